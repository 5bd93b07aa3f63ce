"""As long as one of monitor, client and shepherd can run, every failure fails
towards the owner: each of them, singly and in pairs, is killed or stopped while
the owner returns, and the job is gone or unable to use the CPU soon after.

The deadline of 2 s is stretched on a machine that is slow to schedule: by the
delay that a plain timer sees in the same run."""

import itertools
import os
import signal
import sys
import threading
import time
import unittest

import harness

LIMIT = 2.0


class Jitter:
    """The longest delay of a short sleep, while it runs: what this machine adds
    to any deadline at the moment."""

    def __enter__(self):
        self.worst = 0.0
        self.running = True
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while self.running:
            before = time.monotonic()
            time.sleep(0.01)
            self.worst = max(self.worst, time.monotonic() - before - 0.01)

    def __exit__(self, *_):
        self.running = False
        self.thread.join()


class OwnerMatrix(unittest.TestCase):
    def start(self, pool):
        pool.start_server()
        curly = pool.client("curly").start()
        pool.wait_machines(1)
        # Ignores the request to leave and burns the CPU: the worst of tenants.
        job = pool.submit("--name", "burner", "--", "sh", "-c", "trap '' TERM; while :; do :; done")[0]
        attempt = harness.wait_for(lambda: next(iter(curly.attempts()), None), "an attempt")
        record = harness.wait_for(lambda: curly.record(attempt), "its record\n" + pool.all_logs())
        pid = int(record["job_pid"])
        harness.wait_for(lambda: harness.cpu_ticks(pid) > 5, "the job to burn")
        pids = {"shepherd": int(record["shepherd_pid"]), "client": curly.process.pid,
                "monitor": curly.monitor_pids()[0]}
        return curly, pid, pids

    def check(self, victims, sig):
        with harness.Pool() as pool:
            curly, job, pids = self.start(pool)
            with Jitter() as jitter:
                for victim in victims:
                    harness.kill(pids[victim], sig)
                curly.owner("active")
                began = time.monotonic()
                gone = self.wait_quiet(job)
                took = gone - began
            for victim in victims:
                harness.kill(pids[victim], signal.SIGCONT)
            limit = LIMIT + 20 * jitter.worst
            print("%s %s: %.2f s (limit %.2f s)" %
                  ("+".join(victims), signal.Signals(sig).name, took, limit), file=sys.stderr)
            self.assertLess(took, limit, pool.all_logs())

    def wait_quiet(self, pid):
        """When the job was first seen gone, or when it last used the CPU before
        standing still for a second."""
        last = harness.cpu_ticks(pid)
        changed = time.monotonic()
        while time.monotonic() - changed < 1.0:
            if not harness.alive(pid):
                return time.monotonic()
            now = harness.cpu_ticks(pid)
            if now != last:
                last, changed = now, time.monotonic()
                self.assertLess(changed - self.id_time, 60, "the job goes on and on")
            time.sleep(0.01)
        return changed

    def setUp(self):
        self.id_time = time.monotonic()


def add(victims, sig):
    name = "test_%s_%s" % ("_".join(victims) or "nobody", signal.Signals(sig).name)
    setattr(OwnerMatrix, name, lambda self: self.check(victims, sig))


for _size in (1, 2):
    for _victims in itertools.combinations(["monitor", "client", "shepherd"], _size):
        for _sig in (signal.SIGKILL, signal.SIGSTOP):
            add(_victims, _sig)
add((), signal.SIGKILL)

if __name__ == "__main__":
    unittest.main()
