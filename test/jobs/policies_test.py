"""The policy for the next job is changed while jobs run and wait: nothing is lost, and nothing
runs twice."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

# Each policy, and what it says of a job that it chose.
SENTENCES = {"fifo": "came first", "up-down": "up-down index", "random": "drawn at random",
             "fair-share": "CPU s for 1 share", "umol": "who has 0 running",
             "fair-share-1998": "active, 1 share", "round-robin": "whose turn it is"}


class Policies(unittest.TestCase):
    def test_each_takes_over(self):
        with harness.Pool() as pool:
            pool.start_server(["scheduling.jobs=round-robin"])
            pool.client("curly").start()
            pool.wait_machines(1)
            gate = os.path.join(pool.folder, "gate-")
            jobs = pool.submit("--count", 1 + len(SENTENCES), "--", "sh", "-c",
                               "until test -e %s$0; do sleep 0.02; done" % gate, "{index}")

            def running():
                return [job for job in jobs if pool.job_state(job) == "running"]
            for policy, sentence in SENTENCES.items():
                harness.wait_for(running, "a job to run")
                job, = running()
                pool.stop_server()
                pool.start_server(["scheduling.jobs=" + policy])
                with open(gate + str(job - jobs[0]), "w"):
                    pass
                pool.wait_state(job, "done")
                harness.wait_for(running, "the next job to run")
                self.assertIn(sentence, pool.run("why", running()[0])[1], policy)
            for index in range(len(jobs)):
                with open(gate + str(index), "w"):
                    pass
            for job in jobs:
                pool.wait_state(job, "done")
                self.assertEqual(len(pool.attempts(job)), 1)

    def test_a_priority_changes_while_it_waits(self):
        with harness.Pool() as pool:
            pool.start_server()
            gate = os.path.join(pool.folder, "gate")
            pool.client("curly").start()
            pool.wait_machines(1)
            first, second, third = pool.submit(
                "--count", 3, "--", "sh", "-c", "until test -e %s; do sleep 0.02; done" % gate)
            pool.wait_state(first, "running")
            self.assertEqual(pool.run("priority", 5, third)[:2], (0, "gave priority 5 to 1 job\n"))
            self.assertEqual(pool.sublet("priority", -1, first, "--state", "running"),
                             {"changed": 1, "unchanged": 0})
            self.assertEqual(pool.run("priority", 5, third)[:2], (
                0, "gave priority 5 to 0 jobs; 1 unchanged (5 already, or ended)\n"))
            pool.stop_server()
            pool.start_server()
            self.assertEqual([job["priority"] for job in pool.sublet("ls")["jobs"]], [5, 0, -1])
            self.assertIn("priority   5\n", pool.run("show", third)[1])
            shown = pool.sublet("show", third)
            self.assertEqual((shown["priority"], shown["description"]["priority"]), (5, 0))
            with open(gate, "w"):
                pass
            for job in (first, second, third):
                pool.wait_state(job, "done")

            def started(job):
                return pool.attempts(job)[0]["started_us"]
            self.assertLess(started(third), started(second))
            status, _, err = pool.run("priority", 1, first)
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(pool.job(first)["priority"], -1)


if __name__ == "__main__":
    unittest.main()
