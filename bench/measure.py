"""Shared by all benchmarks: reporting of figures, percentiles, resource use of processes, and
the measuring programs."""

import json
import os
import select
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test"))
import harness  # noqa: E402

NS = 1e9
LONGEST_SECONDS = 180  # for one run of a measuring program


class Unmeasurable(Exception):
    """The figure cannot be measured here; the text says why."""


class Missed(Exception):
    """Figures that were told are beyond their budgets; the text names them."""


class Report:
    """Prints each figure as soon as it is known."""

    def __init__(self, bench, as_json):
        self.bench = bench
        self.as_json = as_json
        if not as_json:
            print(bench)

    def add(self, metric, value, unit, limit=None, budget=None):
        """limit: the physical limit, or the best of all programs; budget: the most that is
        allowed; in the same unit."""
        line = {"bench": self.bench, "metric": metric, "value": value, "unit": unit}
        if limit is not None:
            line["limit"] = limit
        if budget is not None:
            line["budget"] = budget
        if self.as_json:
            print(json.dumps(line))
        else:
            beside = "" if limit is None else "  limit %s, ratio %.2f" % (short(limit),
                                                                          value / limit)
            if budget is not None:
                beside += "  budget %s: %s" % (short(budget),
                                               "met" if value <= budget else "NOT MET")
            print("  %-38s %12s %s%s" % (metric, short(value), unit, beside))
        sys.stdout.flush()

    def add_delays(self, metric, seconds, limits=(None, None)):
        """Median and 99th percentile, in milliseconds; limits in seconds."""
        for percent, limit in zip((50, 99), limits):
            self.add("%s_p%d" % (metric, percent), 1000 * percentile(seconds, percent), "ms",
                     None if limit is None else 1000 * limit)

    def add_spread(self, metric, seconds, budget=None):
        """Median, 99th percentile and the largest, in milliseconds; the budget is for the 99th
        percentile."""
        for percent in (50, 99):
            self.add("%s_p%d" % (metric, percent), 1000 * percentile(seconds, percent), "ms",
                     budget=budget if percent == 99 else None)
        self.add(metric + "_max", 1000 * max(seconds), "ms")


def short(value):
    return "%.0f" % value if value >= 1000 else "%.4g" % value


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


# -- the measuring programs ------------------------------------------------------


def program(name):
    return os.path.join(harness.UNIT, "bench-" + name)


def run_program(name, *words):
    """Runs it to its end and returns the object that it printed."""
    try:
        done = subprocess.run([program(name)] + [str(w) for w in words], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unmeasurable("%s takes longer than %d s" % (name, LONGEST_SECONDS))
    if done.returncode != 0:
        raise Unmeasurable(done.stderr.strip() or "%s ended with %d" % (name, done.returncode))
    return json.loads(done.stdout)


def limits(*words):
    return run_program("limits", *words)


def rate(result):
    return result["count"] / result["seconds"]


class Caller:
    """A user's program that stays connected: bench-caller. A context manager."""

    def __init__(self, pool):
        self.process = subprocess.Popen([program("caller"), pool.socket], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def ask(self, *words):
        self.begin(*words)
        return self.answer()

    def begin(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Unmeasurable("bench-caller ended without an answer")
        return json.loads(line)

    def await_done(self, count):
        """Waits until this many jobs are done; an error if one has failed."""
        def enough():
            counts = self.ask("count")
            if counts["failed"]:
                raise Unmeasurable("%d jobs failed" % counts["failed"])
            return counts["done"] >= count
        harness.wait_for(enough, "%d jobs to be done" % count)


class Told:
    """Receives the datagrams of jobs that run bench-tell. Instants are seconds of
    CLOCK_MONOTONIC, read in the job itself."""

    def __init__(self, pool):
        self.program = pool.public(program("tell"))
        self.path = os.path.join(pool.folder, "told")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(harness.PATIENCE)
        # The kernel tells who sent: a job knows its number in its own namespace only.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        os.chmod(self.path, 0o666)

    def hear(self, word):
        """(instant, pid) of the next datagram with this word."""
        while True:
            try:
                text, ((_, _, sender),), _, _ = self.socket.recvmsg(256, socket.CMSG_SPACE(12))
            except socket.timeout:
                raise Unmeasurable("no job sent '%s'" % word)
            said, _, _, at = text.decode().split()
            if said == word:
                return int(at) / NS, struct.unpack("3i", sender)[0]

    def waits(self, seconds):
        """Whether there is a datagram within this time."""
        return bool(select.select([self.socket], [], [], seconds)[0])

    def forget(self):
        """Drops the datagrams of jobs that have ended."""
        while self.waits(0):
            self.socket.recv(256)

    def close(self):
        self.socket.close()


class Tenants:
    """Runs bench-tell with these words, each time as a job of its own: one that is evicted five
    times in a row at once is held. End it before the owner leaves: it would start again."""

    def __init__(self, pool, told, *words):
        self.pool = pool
        self.told = told
        self.words = words

    def start(self):
        """Submits a job and waits for its start; returns its pid."""
        self.job = self.pool.submit("--", self.told.program, self.told.path, *self.words)[0]
        return self.told.hear("start")[1]

    def end(self):
        self.pool.sublet("rm", self.job)


# -- what processes use ----------------------------------------------------------


def tasks(pid):
    folder = "/proc/%d/task" % pid
    return [os.path.join(folder, task) for task in os.listdir(folder)]


def cpu_seconds(pids):
    """CPU time of all threads that exist now, exact."""
    total = 0
    for pid in pids:
        for task in tasks(pid):
            try:
                with open(task + "/schedstat") as f:
                    total += int(f.read().split()[0])
            except FileNotFoundError:
                pass
    return total / NS


def cpu_seconds_in_all(pids):
    """CPU time of all threads, those that have ended too, in clock ticks."""
    total = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as f:
            total += sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13])
    return total / os.sysconf("SC_CLK_TCK")


def wakeups(pids):
    """How often their threads have slept and been woken: voluntary context switches."""
    total = 0
    for pid in pids:
        for task in tasks(pid):
            with open(task + "/status") as f:
                total += sum(int(line.split()[1]) for line in f
                             if line.startswith("voluntary_ctxt_switches"))
    return total


def private_bytes(pids):
    return mapped_bytes(pids, "Private_")


def mapped_bytes(pids, kind):
    """kind: Private_, or Shared_ with other processes."""
    total = 0
    for pid in pids:
        with open("/proc/%d/smaps_rollup" % pid) as f:
            total += sum(1024 * int(line.split()[1]) for line in f
                         if line.startswith((kind + "Clean", kind + "Dirty")))
    return total


def machine_cpu_seconds():
    """CPU time used by everything on this machine."""
    with open("/proc/stat") as f:
        fields = [int(n) for n in f.readline().split()[1:]]
    user, nice, system, _, _, irq, softirq, steal = fields[:8]
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


class Daemons:
    """The process ids of a pool with one workstation, by daemon."""

    def __init__(self, pool, client):
        self.server = [pool.supervisor.pid] + harness.children(pool.supervisor.pid)
        self.client = [client.process.pid]
        # A machine is known before its monitor runs.
        self.monitor = harness.wait_for(client.monitor_pids, "the load monitor")


def until_gone(pid):
    """The instant at which the process was gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return time.monotonic()
    try:
        ready, _, _ = select.select([descriptor], [], [], harness.PATIENCE)
        if not ready:
            raise Unmeasurable("process %d does not exit" % pid)
        return time.monotonic()
    finally:
        os.close(descriptor)
