"""A batch that is entered in slices, and a server that dies between two of them: after its
restart all jobs of the batch are there, once, and none but they."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

JOBS = 1200  # of 250 that differ a slice: five


class LargeBatch(unittest.TestCase):
    def submit_with_crash(self, place):
        pool = harness.Pool(server_sets=["debug.crash_at=" + place])
        self.addCleanup(pool.close)
        pool.start_server()
        pool.patient = True
        batch_file = os.path.join(pool.folder, "large.toml")
        with open(batch_file, "w") as f:
            for number in range(JOBS):
                f.write('[[job]]\nname = "n%d"\nprogram = "true"\nretries = %d\n' %
                        (number, number % 2))
        submitted = pool.ask("submit", batch_file)
        first = submitted["jobs"]["first"]
        self.assertEqual(submitted["jobs"]["count"], JOBS)
        with open(os.path.join(pool.folder, "server.log")) as log:
            self.assertEqual(log.read().count("died of signal 9"), 1, "the crash was reached")
        self.check_jobs(pool, submitted["batch"], first)
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


if __name__ == "__main__":
    unittest.main()
