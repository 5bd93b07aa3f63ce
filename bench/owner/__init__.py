"""How soon the owner has the machine back, and how soon the owner's load is detected.

event: the owner's return, by the monitor's control file, which takes effect at once. told: the
job receives the signal to leave (until then it has minimal CPU weight; while it saves, its CPU
allowance applies). gone: a job with nothing to save has exited. deaf_stopped: the last instant
at which a job runs that ignores SIGTERM and uses all the CPU time that it gets; deaf_gone: it has
ended. busy_: the same beside programs of the owner's, two on each core. orphan_gone: from the
death of such a job's shepherd until the job has ended, beside the same programs. The limit is a
bare signal, from sending it until its handler runs.
load: a program of the owner's begins to use a core; the limit is one sampling period."""

import contextlib
import os
import signal
import struct
import subprocess
import time

import harness
import measure

SAMPLE_SECONDS = 0.5  # sample_period


def run(report, quick):
    bare = measure.limits("signal", 20 if quick else 300)
    bare_signal = (bare["p50"], bare["p99"])
    leaves(report, 2 if quick else 60, bare_signal)
    for busy in (False, True):
        stays(report, 1 if quick else 200, bare_signal, busy)
    orphans(report, 1 if quick else 100, bare_signal)
    if not quick:  # needs an otherwise idle machine
        load(report, 15)


def leaves(report, rounds, bare_signal):
    to_told, to_gone = [], []
    with harness.Pool() as pool:
        curly, told = start(pool)
        tenants = measure.Tenants(pool, told, "leave")
        for _ in range(rounds):
            pid = tenants.start()
            event = time.monotonic()
            curly.owner("active")
            gone = measure.until_gone(pid)
            at, _ = told.hear("told")
            to_told.append(at - event)
            to_gone.append(gone - event)
            tenants.end()
            curly.owner("away")
        told.close()
    report.add_delays("event_to_told", to_told, bare_signal)
    report.add_delays("event_to_gone", to_gone, bare_signal)


def stays(report, rounds, bare_signal, busy):
    to_stopped, to_gone = [], []
    with harness.Pool() as pool, OwnersPrograms(busy) as owners:
        curly, deaf = start_deaf(pool)
        for _ in range(rounds):
            pid = deaf.tenants.start()
            with owners.running():
                event = time.monotonic()
                curly.owner("active")
                to_gone.append(measure.until_gone(pid) - event)
            # Beside busy programs it may have run for the last time before the event.
            to_stopped.append(max(0, deaf.last_ran() - event))
            deaf.tenants.end()
            curly.owner("away")
        deaf.told.close()
    name = "busy_" if busy else ""
    report.add_delays("event_to_%sdeaf_stopped" % name, to_stopped, bare_signal)
    report.add_delays("event_to_%sdeaf_gone" % name, to_gone, bare_signal)


def orphans(report, rounds, bare_signal):
    to_gone = []
    with harness.Pool() as pool, OwnersPrograms(True) as owners:
        curly, deaf = start_deaf(pool)
        for _ in range(rounds):
            pid = deaf.tenants.start()
            shepherd = harness.wait_for(lambda: shepherd_of(curly, pid), "the job's record")
            with owners.running():
                died = time.monotonic()
                os.kill(shepherd, signal.SIGKILL)
                to_gone.append(measure.until_gone(pid) - died)
            deaf.tenants.end()
            harness.wait_for(lambda: not curly.attempts(), "the attempt's end")
            deaf.told.forget()  # it may have started again
        deaf.told.close()
    report.add_delays("orphan_gone", to_gone, bare_signal)


def shepherd_of(curly, pid):
    records = filter(None, map(curly.record, curly.attempts()))
    return next((int(r["shepherd_pid"]) for r in records if int(r["job_pid"]) == pid), None)


class Deaf:
    """Runs jobs that ignore SIGTERM and use all the CPU time that they get."""

    def __init__(self, pool, told):
        self.clock = os.path.join(pool.folder, "last-ran")
        with open(self.clock, "wb") as f:
            f.write(bytes(8))
        os.chmod(self.clock, 0o666)
        self.told = told
        self.tenants = measure.Tenants(pool, told, "stay", self.clock)

    def last_ran(self):
        with open(self.clock, "rb") as f:
            return struct.unpack("=q", f.read(8))[0] / measure.NS


def start_deaf(pool):
    curly, told = start(pool)
    return curly, Deaf(pool, told)


class OwnersPrograms:
    """Two busy programs of the owner's on each core, each in a session of its own; none if not
    `busy`. They run only within running(), because no job would start beside them in time."""

    PER_CORE = 2
    WARM_SECONDS = 0.05

    def __init__(self, busy):
        self.count = self.PER_CORE * len(os.sched_getaffinity(0)) if busy else 0

    def __enter__(self):
        self.programs = [subprocess.Popen(["sh", "-c", "while :; do :; done"],
                                          start_new_session=True) for _ in range(self.count)]
        self.tell(signal.SIGSTOP)
        return self

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()
            program.wait()

    def tell(self, number):
        for program in self.programs:
            program.send_signal(number)

    @contextlib.contextmanager
    def running(self):
        self.tell(signal.SIGCONT)
        time.sleep(self.WARM_SECONDS if self.programs else 0)
        try:
            yield
        finally:
            self.tell(signal.SIGSTOP)


def start(pool, **options):
    pool.start_server()
    curly = pool.client("curly", **options).start()
    pool.wait_machines(1)
    return curly, measure.Told(pool)


def load(report, rounds):
    delays = []
    with harness.Pool() as pool:
        _, told = start(pool, scripted=False, monitor_sets=["idle_time=1s", "input=false"])
        tenants = measure.Tenants(pool, told, "leave")
        for _ in range(rounds):
            tenants.start()
            time.sleep(SAMPLE_SECONDS)
            began = time.monotonic()
            owners = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            try:
                at, _ = told.hear("told")
                tenants.end()
            finally:
                owners.kill()
                owners.wait()
            delays.append(at - began)
        told.close()
    report.add_delays("load_to_told", delays, (SAMPLE_SECONDS, SAMPLE_SECONDS))
