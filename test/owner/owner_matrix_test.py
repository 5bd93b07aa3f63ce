"""As long as one of monitor, client and shepherd runs, every failure is resolved in the
owner's favour: one or two of them are killed or stopped when the owner returns, and soon
after every process of the job is gone or cannot use the CPU.

The deadline of 2 s is for a quiet machine (harness.Pace)."""

import contextlib
import itertools
import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

LIMIT = 2.0
# Client and monitor look for stopped shepherds every 0.3 s during an eviction.
STOPPED_LIMIT = 1.0
MOMENT_NS = 5e6


# The worst case: the main program ignores the request to leave, and starts one busy loop
# for each core. These are created by a double fork, so that their only parent is the first process
# of the job's namespace, or the shepherd, as subreaper; each has its own session; all ignore TERM,
# INT and HUP.
BURNER = ("trap '' TERM INT HUP; i=0; while [ $i -lt %d ]; do"
          " (setsid sh -c 'while :; do :; done' &); i=$((i + 1)); done; exec sleep 100000")
CORES = len(os.sched_getaffinity(0))
# Receives the request to leave, but burns only when it is told to.
LATE_BURNER = ("trap ': > %s/asked; read x < %s/go; while :; do :; done' TERM;"
               " while :; do sleep 1000 & wait $!; done")


def marked(mark):
    """Pids of the processes whose environment holds `mark`."""
    result = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % entry, "rb") as environ:
                if mark.encode() in environ.read().split(b"\0") and harness.alive(int(entry)):
                    result.append(int(entry))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    return result


def both(pids):
    return pids if len(pids) == 2 else None


def cpu_ns(pid):
    """Exact CPU time: clock ticks are too coarse for a job beside a busy machine."""
    try:
        with open("/proc/%d/schedstat" % pid) as schedstat:
            return int(schedstat.read().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def can_run(pid):
    """Whether it is neither gone nor stopped nor frozen: a busy loop never waits."""
    try:
        with open("/proc/%d/stat" % pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "R"
    except (FileNotFoundError, ProcessLookupError):
        return False


def parent_and_session(pid):
    try:
        with open("/proc/%d/stat" % pid) as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return int(fields[1]), int(fields[3])
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0


@contextlib.contextmanager
def resumed_afterwards(pids):
    """Also if the test fails: a stopped daemon could not end with its pool."""
    pids = list(pids)
    try:
        yield
    finally:
        for pid in pids:
            harness.kill(pid, signal.SIGCONT)


class OwnerMatrix(unittest.TestCase):
    def start(self, pool, script):
        """Returns the client, the job's main process, and the daemons that guard the owner."""
        pool.start_server()
        curly = pool.client("curly").start()
        pool.wait_machines(1)
        self.mark = "BURNER=" + pool.folder
        pool.submit("--name", "burner", "--env", self.mark, "--", "sh", "-c", script)
        attempt = harness.wait_for(lambda: next(iter(curly.attempts()), None), "an attempt")
        record = harness.wait_for(lambda: curly.record(attempt), "its record\n" + pool.all_logs())
        return curly, int(record["job_pid"]), {"shepherd": int(record["shepherd_pid"]),
                                               "client": curly.process.pid,
                                               "monitor": curly.monitor_pids()[0]}

    def start_burner(self, pool):
        """Like start(), but returns all of the job's processes."""
        curly, main, pids = self.start(pool, BURNER % CORES)
        guards = [pids["shepherd"]] + harness.children(pids["shepherd"])

        def apart(process):
            parent, session = parent_and_session(process)
            return parent in guards and parent != main and session == process

        def burning():
            pids = marked(self.mark)
            spinners = [p for p in pids if p != main and cpu_ns(p) > MOMENT_NS and apart(p)]
            return pids if len(spinners) == CORES and len(pids) == CORES + 1 else None
        job = harness.wait_for(burning, "the job to burn every core\n" + pool.all_logs())
        for process in job:
            self.assertTrue(apart(process), parent_and_session(process))
        return curly, job, pids

    def check(self, victims):
        """victims: name -> the signal sent to it."""
        with harness.Pool() as pool:
            curly, job, pids = self.start_burner(pool)
            with resumed_afterwards(pids[victim] for victim in victims), harness.Pace() as pace:
                for victim, sig in victims.items():
                    harness.kill(pids[victim], sig)
                curly.owner("active")
                began = time.monotonic()
                took = self.wait_quiet(job) - began
            self.assertLess(took, pace.limit(LIMIT), pool.all_logs())

    def check_stopped_later(self, victim, sig):
        """A shepherd is stopped after it has acknowledged the eviction, while only one daemon
        besides it is left. Nobody else enforces the job's CPU allowance."""
        with harness.Pool() as pool:
            folder = pool.folder + "/late"
            os.mkdir(folder)
            os.chmod(folder, 0o777)  # as root, the job has another user id
            os.mkfifo(folder + "/go")
            os.chmod(folder + "/go", 0o666)
            # For reading, too: opening does not wait for the job, which may be stopped before.
            go = os.open(folder + "/go", os.O_RDWR)
            self.addCleanup(os.close, go)
            curly, main, pids = self.start(pool, LATE_BURNER % (folder, folder))
            # Read once: while its child begins to sleep, the kernel shows it no environment.
            job = harness.wait_for(lambda: both(marked(self.mark)), "the job to wait in its loop")
            self.assertIn(main, job)
            with resumed_afterwards((pids[victim], pids["shepherd"])):
                harness.kill(pids[victim], sig)
                curly.owner("active")
                harness.wait_for(lambda: os.path.exists(folder + "/asked"),
                                 "the request to leave")
                harness.kill(pids["shepherd"], signal.SIGSTOP)
                with harness.Pace() as pace:
                    os.write(go, b"\n")
                    began = time.monotonic()
                    took = self.wait_quiet(job) - began
            self.assertLess(took, pace.limit(STOPPED_LIMIT), pool.all_logs())

    def test_shepherd_stopped_after_its_answer_without_a_monitor(self):
        self.check_stopped_later("monitor", signal.SIGKILL)

    def test_shepherd_stopped_after_its_answer_without_a_client(self):
        self.check_stopped_later("client", signal.SIGSTOP)

    def wait_quiet(self, job):
        """Returns when the last of the job's processes was first seen gone, or when any of them
        last used the CPU before none did for a second. The short time that a process needs
        to receive a signal does not count."""
        began = changed = time.monotonic()
        used, counted = {}, 0
        while time.monotonic() - changed < 1.0:
            if not any(harness.alive(p) for p in job):
                # Includes new processes: a job may fork while it is killed.
                job = marked(self.mark)
                if not job:
                    return time.monotonic()
            used.update({p: cpu_ns(p) for p in job if harness.alive(p)})
            if sum(used.values()) - counted > MOMENT_NS:
                changed, counted = time.monotonic(), sum(used.values())
                self.assertLess(changed - began, 60, "the job does not stop")
            time.sleep(0.01)
        self.assertLessEqual(set(marked(self.mark)), set(job), "no other process uses CPU time")
        # On a busy machine a job gets no CPU time anyway: that alone proves nothing.
        harness.wait_for(lambda: not any(can_run(p) for p in job), "the job to be stopped")
        return changed


def name_of(victims):
    return "+".join("%s %s" % (v, signal.Signals(s).name) for v, s in victims.items()) or "nobody"


def add(victims):
    name = "test_" + name_of(victims).replace(" ", "_").replace("+", "_")
    setattr(OwnerMatrix, name, lambda self: self.check(victims))


# Each alone, and each pair of the three: both killed, both stopped, or one of each.
GUARDS = ["monitor", "client", "shepherd"]
SIGNALS = [signal.SIGKILL, signal.SIGSTOP]
add({})
for _victim, _sig in itertools.product(GUARDS, SIGNALS):
    add({_victim: _sig})
for _pair in itertools.combinations(GUARDS, 2):
    for _sigs in itertools.product(SIGNALS, SIGNALS):
        add(dict(zip(_pair, _sigs)))

if __name__ == "__main__":
    unittest.main()
