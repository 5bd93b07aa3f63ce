"""What jobs ask of a machine is reserved for them: a slot is one bound among several. And what
their machine must offer, as an expression."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

INVALID, CONFLICT = 2, 6
SLEEP = ("--", "sleep", "1000")


class Resources(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.pool.__enter__()
        self.addCleanup(self.pool.close)
        self.pool.start_server()

    def machine(self, slots):
        """Starts a client; what the pool knows of its machine."""
        self.pool.client("curly", slots=slots).start()
        self.pool.wait_machines(1)
        return self.pool.machines()[0]

    def runs(self, job):
        return self.pool.wait_state(job, ("running",))

    def assert_waits(self, job, reason):
        wait_for(lambda: self.pool.job(job)["reason"].startswith(reason),
                 "job %d to wait because: %s" % (job, reason))
        self.assertEqual("waiting", self.pool.job_state(job))

    def test_memory_for_one_of_two(self):
        """As two jobs of 12 GiB on a machine with 15."""
        memory = str(self.machine(slots=2)["memory_free"] * 12 // 15)
        first, second = (self.pool.submit("--memory", memory, *SLEEP)[0] for _ in range(2))
        self.runs(first)
        self.assert_waits(second, "1 machine fits, full")
        small = self.pool.submit("--memory", "1 MiB", *SLEEP)[0]
        self.runs(small)
        self.pool.sublet("rm", str(first))
        self.pool.sublet("rm", str(small))
        self.runs(second)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two cores")
    def test_all_cores_for_one(self):
        cores = self.machine(slots=len(os.sched_getaffinity(0)))["cores"]
        wide = self.pool.submit("--cores", str(cores), *SLEEP)[0]
        self.runs(wide)
        narrow = self.pool.submit(*SLEEP)[0]
        self.assert_waits(narrow, "1 machine fits, full")
        self.pool.sublet("rm", str(wide))
        self.runs(narrow)
        again = self.pool.submit("--cores", str(cores), *SLEEP)[0]
        self.assert_waits(again, "1 machine fits, full")

    def test_expressions(self):
        cores = self.machine(slots=1)["cores"]
        met = "os == 'linux' and cores >= %d" % cores
        self.runs(self.pool.submit("--require", met, *SLEEP)[0])
        unmet = "cores > %d" % cores
        status, _, err = self.pool.run("submit", "--require", unmet, *SLEEP)
        self.assertEqual(CONFLICT, status)
        self.assertIn('no machine meets "%s"' % unmet, err)
        job = self.pool.submit("--even-so", "--require", unmet, *SLEEP)[0]
        self.assert_waits(job, 'no machine meets "%s"' % unmet)
        self.assertEqual(unmet, self.pool.job(job)["description"]["needs"]["require"])
        for wrong, said in (("core > 1", "column 1: unknown name 'core'; did you mean 'cores'?"),
                            ("cores > 1 and", "column 14"), ("cores", "column 1")):
            status, _, err = self.pool.run("submit", "--require", wrong, *SLEEP)
            self.assertNotEqual(0, status)
            self.assertIn(said, err)


if __name__ == "__main__":
    unittest.main()
