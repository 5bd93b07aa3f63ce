"""T4.4 repeated: two workstations whose owners' load is simulated, two jobs that start
and leave accordingly, and the records of the load monitors and the server."""

import bisect
import collections
import math
import os
import socket
import struct
import time

import plot as demo_plot
import source
import harness

# (minute, number of runnable programs of the owner from then on; one that runs half
# of the time counts half). The load is their average, computed as the kernel does.
OWNERS = {
    "moe": [(0, 0.4), (5, 0.7), (9, 0.9), (13, 0.85), (24, 3), (25.6, 1.8), (31, 1.5), (35, 1.25),
            (44, 0.8), (69, 3), (70.7, 1.6), (74, 1.2), (79, 0.7)],
    "curly": [(0, 0.1), (33, 3), (34.8, 1.9), (36.5, 1.2), (39, 0.02), (73, 3), (74.8, 1.8),
              (77, 1.3)],
}
STEPS = 12  # per minute: the kernel updates its average every 5 s

FRAME = "<IHHQIIIIq4q"  # protocol/frame.h
MAGIC, HELLO, PRESENCE = 0x314C4253, 1, 2
ACTIVE = 1
LOAD, SETTLING = 2, 4


def owners_load(timeline, minute):
    """The load average over one minute at `minute`: exponential, as the kernel's."""
    load = programs = timeline[0][1]
    since = timeline[0][0]
    for start, count in timeline[1:] + [(math.inf, 0)]:
        until = min(start, minute)
        load = programs + (load - programs) * math.exp(since - until)
        if start >= minute:
            return load
        since, programs = start, count


# A load monitor's sample; at (CLOCK_BOOTTIME) and until_idle in seconds.
Sample = collections.namedtuple("Sample", "at load state reason until_idle")


def boot_seconds():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Recorder:
    """Listens to a load monitor as a client does. Each connection receives the current
    state at once, then every change."""

    def __init__(self, path):
        self.path = path
        self.samples = []
        self.connection = None

    def sample(self):
        if self.connection:
            self.connection.setblocking(False)
            while self.take():
                pass
            self.connection.close()
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(harness.PATIENCE)
        self.connection.connect(self.path)
        self.connection.send(struct.pack(FRAME, MAGIC, HELLO, 0, 0, 0, 1, 0, 0, 0, os.getpid(),
                                         0, 0, 0))
        self.take()

    def take(self):
        try:
            data = self.connection.recv(256)
        except BlockingIOError:
            return False
        if not data:
            return False
        frame = struct.unpack(FRAME, data)
        if frame[1] != PRESENCE:
            return True
        sample = Sample(at=frame[8] / 1e9, load=frame[12] / 1000, state=frame[6], reason=frame[7],
                        until_idle=frame[11] / 1000)
        if not self.samples or sample.at > self.samples[-1].at:
            self.samples.append(sample)
        return True

    def close(self):
        if self.connection:
            self.connection.close()


class JobLoad:
    """The load that the job of one workstation causes: whether its process is
    runnable, averaged over a played minute."""

    def __init__(self, client, seconds_a_minute):
        self.client = client
        self.minute = seconds_a_minute
        self.load = 0
        self.last = None
        self.parts = []  # (CLOCK_BOOTTIME s, load)

    def sample(self):
        now = boot_seconds()
        if self.last is not None:
            keep = math.exp((self.last - now) / self.minute)
            self.load = self.load * keep + self.runnable() * (1 - keep)
        self.last = now
        self.parts.append((now, self.load))

    def runnable(self):
        attempt = self.client.running()
        record = self.client.record(attempt) if attempt else None
        try:
            with open("/proc/%s/stat" % record["job_pid"]) as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] == "R"
        except (TypeError, FileNotFoundError, ProcessLookupError):
            return 0  # no job, or it has ended


class Machine:
    def __init__(self, pool, name, seconds_a_minute):
        self.name = name
        self.client = pool.client(name, monitor_sets=[
            "rule=classic", "sample_period=100 ms",
            "idle_time=%d ms" % round(source.IDLE_MINUTES * seconds_a_minute * 1000)])
        self.play(source.EVICT_ABOVE)  # not idle before minute 0
        self.client.start()
        self.recorder = Recorder(os.path.join(self.client.state, "monitor.sock"))
        self.job_load = JobLoad(self.client, seconds_a_minute)

    def play(self, load):
        self.client.owner("load %.3f" % load)

    def step(self, minute):
        self.play(owners_load(OWNERS[self.name], minute))
        self.recorder.sample()
        self.job_load.sample()

    def state(self):
        last = self.recorder.samples[-1]
        attempt = self.client.running()
        return "%s %.2f %s" % (self.name, last.load, "owner" if last.state == ACTIVE else
                               "job " + attempt.split(".")[0] if attempt else "idle")


def idle_events(samples, idle_s):
    """(instant, "a", load) of each time that the load fell below the threshold,
    computed from how long the monitor will still wait."""
    events = []
    loaded = True
    for s in samples:
        if loaded and s.reason == SETTLING:
            events.append((s.at + s.until_idle - idle_s, "a", s.load))
        loaded = s.reason == LOAD
    return events


def leave_events(samples, stays):
    """(instant, "c", load) of each time that the owner's load ended a stay. `stays`:
    [(start, end)], instants."""
    events = []
    idle = False
    for s in samples:
        if idle and s.reason == LOAD and any(a <= s.at <= b for a, b in stays):
            events.append((s.at, "c", s.load))
        idle = s.state != ACTIVE
    return events


def trace(machine, attempts, start, wall, seconds_a_minute):
    """The samples and events of one machine, in played minutes. `attempts`: of all jobs;
    `wall`: the wall-clock time of CLOCK_BOOTTIME 0, in seconds."""
    samples = [s for s in machine.recorder.samples if s.at >= start]
    here = [(a["started_us"] / 1e6 - wall, a["finished_us"] / 1e6 - wall, a["ended"])
            for a in attempts if a["machine_name"] == machine.name and a["started_us"] > 0]
    times = [s.at for s in samples]
    events = idle_events(samples, source.IDLE_MINUTES * seconds_a_minute)
    events += [(since, "b", samples[max(0, bisect.bisect(times, since) - 1)].load)
               for since, _, _ in here]
    events += leave_events(samples, [(a, b) for a, b, how in here if how == "owner came back"])

    def minute(at):
        return (at - start) / seconds_a_minute
    part_times = [at for at, _ in machine.job_load.parts]
    joined = [(minute(s.at), s.load,
               machine.job_load.parts[max(0, bisect.bisect(part_times, s.at) - 1)][1])
              for s in samples]
    return demo_plot.Trace(joined, sorted((minute(at), letter, load)
                                          for at, letter, load in events))


def faults(traces):
    """Violations of the rule, as text; empty if there are none."""
    found = []
    for name, one in traces.items():
        letters = [letter for _, letter, _ in one.events]
        if letters.count("b") < 2 or letters.count("c") < 2:
            found.append("%s: fewer than two jobs started and left" % name)
        idle = None
        for minute, letter, load in one.events:
            if letter == "a":
                idle = minute
            elif letter == "b" and (idle is None or minute - idle < source.IDLE_MINUTES - 0.05):
                found.append("%s: a job started before %d idle minutes" %
                             (name, source.IDLE_MINUTES))
            elif letter == "c" and load <= source.EVICT_ABOVE:
                found.append("%s: a job left at %.2f" % (name, load))
    return found


def play(pool, screen, words, seconds_a_minute):
    """Runs the 80 minutes; returns machine -> demo_plot.Trace, and for each job the
    machines that it was on. `words(i)`: arguments of `sublet submit` for the i-th job,
    which must not end."""
    pool.start_server()
    machines = [Machine(pool, name, seconds_a_minute) for name in OWNERS]
    harness.wait_for(lambda: len(pool.machines()) == len(machines),
                     "two machines\n" + pool.all_logs())
    jobs = [pool.submit("--name", "endless-%d" % i, *words(i))[0] for i in range(2)]
    start = boot_seconds()
    wall = time.time() - start
    try:
        step = 0
        while step <= source.T4_4_MINUTES * STEPS:
            minute = (boot_seconds() - start) / seconds_a_minute
            for machine in machines:
                machine.step(minute)
            screen.progress("T4.4 minute %2.0f of %d: %s" % (
                minute, source.T4_4_MINUTES, ", ".join(m.state() for m in machines)))
            step = max(step + 1, math.ceil(minute * STEPS))
            time.sleep(max(0, start + step * seconds_a_minute / STEPS - boot_seconds()))
        stories = {job: pool.job(job)["attempt_list"] for job in jobs}
    finally:
        for machine in machines:
            machine.recorder.close()
    attempts = [a for story in stories.values() for a in story]
    return ({m.name: trace(m, attempts, start, wall, seconds_a_minute) for m in machines},
            {job: [a["machine_name"] for a in story] for job, story in stories.items()})
