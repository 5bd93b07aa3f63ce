"""A job whose attempts end again and again with the shepherd is held after five: otherwise it would
be started for ever, because an attempt that its machine lost uses up no retry. Only a job that has
no walls can kill its shepherd itself; here the test does."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness


class Vain(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.pool.client("curly").start()
        self.pool.wait_machines(1)

    def held(self, job):
        self.pool.kill_shepherds()
        return self.pool.job_state(job) == "held"

    def test_a_job_that_loses_its_shepherd(self):
        job = self.pool.submit("--", "sleep", "1000")[0]
        harness.wait_for(lambda: self.held(job), "the job to be held")
        shown = self.pool.job(job)
        self.assertGreaterEqual(shown["attempts"], 5)
        self.assertEqual([one["ended"] for one in shown["attempt_list"]], ["machine lost"] * shown["attempts"])
        self.assertTrue(shown["reason"].startswith(
            "held: 5 attempts in a row vanished or were evicted within 2 s, and saved nothing; "
            "attempt %d lost (" % shown["attempts"]), shown["reason"])
        # It was not evicted, and nobody counts it so.
        self.assertEqual(shown["evictions"], 0)
        usage = self.pool.sublet("report", "users")["usage"]
        self.assertEqual([(line["attempts"], line["evictions"]) for line in usage],
                         [(shown["attempts"], 0)])
        status, _, progress = self.pool.run("wait", job, "--timeout", "0.2")
        self.assertEqual((status, progress.splitlines()[0]), (124, "0 of 1 done, 1 held"))
        self.pool.sublet("release", job)
        harness.wait_for(lambda: self.held(job), "the job to be held again")
        self.assertGreaterEqual(self.pool.job(job)["attempts"], 10)


if __name__ == "__main__":
    unittest.main()
