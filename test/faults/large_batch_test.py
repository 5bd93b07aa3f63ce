"""A batch that is entered in slices, and a server that dies between two of them: after its
restart all jobs of the batch are there, once, and none but they."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

JOBS = 1200  # of 250 that differ a slice: five


class LargeBatch(unittest.TestCase):
    def submit_with_crash(self, place, relation=""):
        """`relation`: of all jobs but the first."""
        pool = harness.Pool(server_sets=["debug.crash_at=" + place])
        self.addCleanup(pool.close)
        pool.start_server()
        pool.patient = True
        batch_file = os.path.join(pool.folder, "large.toml")
        with open(batch_file, "w") as f:
            for number in range(JOBS):
                f.write('[[job]]\nname = "n%d"\nprogram = "true"\nretries = %d\n%s\n' %
                        (number, number % 2, relation if number > 0 else ""))
        submitted = pool.ask("submit", batch_file)
        first = submitted["jobs"]["first"]
        self.assertEqual(submitted["jobs"]["count"], JOBS)
        with open(os.path.join(pool.folder, "server.log")) as log:
            self.assertEqual(log.read().count("died of signal 9"), 1, "the crash was reached")
        self.check_jobs(pool, submitted["batch"], first)
        reasons = [pool.ask("why", job)["jobs"][0]["reason"]
                   for job in (first, first + 1, first + JOBS - 1)]
        self.assertNotIn("waits until", reasons[0])
        for reason in reasons[1:]:
            if relation:
                self.assertIn("waits until job %d is done" % first, reason)
            else:
                self.assertNotIn("waits until", reason)
        follower = pool.ask("submit", "--", "true")["jobs"]["first"]
        self.assertEqual(follower, first + JOBS)
        removed = pool.ask("rm", "--batch", submitted["batch"])
        self.assertEqual((removed["changed"], removed["unchanged"]), (JOBS, 0))

    def check_jobs(self, pool, batch, first):
        listed = pool.ask("ls", "--all", "--each-job", "--limit", JOBS + 1)["jobs"]
        self.assertEqual(sorted(job["id"] for job in listed), list(range(first, first + JOBS)))
        for job in listed:
            self.assertEqual((job["batch"], job["name"]), (batch, "n%d" % (job["id"] - first)))

    def test_before_the_first_slice(self):
        self.submit_with_crash("reserved:1")

    def test_after_the_first_slice(self):
        self.submit_with_crash("slice:1")

    def test_after_the_third_slice(self):
        self.submit_with_crash("slice:3")

    def test_after_the_last_slice(self):
        self.submit_with_crash("slice:5")

    # Once all are entered, they begin to wait in three more slices; then the gate opens, in three.
    def test_jobs_that_wait_while_they_come(self):
        self.submit_with_crash("slice:2", 'after = ["n0"]')

    def test_jobs_that_wait_when_all_have_come(self):
        self.submit_with_crash("slice:5", 'after = ["n0"]')

    def test_jobs_of_which_some_have_begun_to_wait(self):
        self.submit_with_crash("slice:7", 'after = ["n0"]')

    def test_jobs_that_wait_while_the_gate_opens(self):
        self.submit_with_crash("slice:10", 'after = ["n0"]')


if __name__ == "__main__":
    unittest.main()
