"""Workstations that do not answer hold up nobody else: a live machine's order goes out within
50 ms beside sixteen whose clients are stopped while the server waits for their answers."""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

STOPPED = 16
JOBS = 20


class Stopped(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        # Longer than the test: none of these calls ends by its time limit, nor is a job given to
        # another machine.
        self.pool.start_server(sets=["server.call_timeout=10 min", "scheduling.lease=1 h"])
        self.deaf = [self.pool.client("deaf%d" % i).start() for i in range(STOPPED)]
        self.pool.wait_machines(STOPPED)
        self.pool.client("curly").start()
        self.pool.wait_machines(STOPPED + 1)

    def signal(self, number):
        for client in self.deaf:
            harness.kill(client.process.pid, number)

    def placed(self):
        return [j["id"] for j in self.pool.sublet("ls", "--each-job", "--state", "placed")["jobs"]]

    def test_a_live_machine_beside_them(self):
        self.signal(signal.SIGSTOP)
        self.addCleanup(self.signal, signal.SIGCONT)
        first = self.pool.submit("--count", STOPPED + 1, "--", "true")
        harness.wait_for(lambda: len(self.placed()) == STOPPED, "orders without an answer")
        waiting = self.placed()
        with harness.Pace() as pace:
            jobs = [self.one_job() for _ in range(JOBS)]
        self.assertEqual(self.placed(), waiting)  # no call to a stopped one has ended
        delays = [job["attempt_list"][0]["started_us"] - job["submitted_us"] for job in jobs]
        self.assertLessEqual(max(delays) / 1e6, pace.limit(0.05), delays)
        self.signal(signal.SIGCONT)
        for job in first:
            self.pool.wait_state(job, "done")

    def one_job(self):
        job = self.pool.submit("--", "true")[0]
        self.pool.wait_state(job, "done")
        return self.pool.job(job)


if __name__ == "__main__":
    unittest.main()
