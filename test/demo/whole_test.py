"""The demonstration itself, with --fast unless `slow` is given: all results are
identical.

usage: whole_test.py [slow]"""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

DEMO = os.path.join(harness.ROOT, "test", "demo", "demo.py")
OPTIONS = [] if sys.argv[1:] == ["slow"] else ["--fast"]


class Whole(unittest.TestCase):
    def test_all_results_are_identical(self):
        done = subprocess.run([sys.executable, "-B", DEMO] + OPTIONS, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        said = " ".join(done.stdout.split())
        summary = re.search(r"demo: 8 of 8 results identical, 0 lost; trainings evicted (\d+) "
                            r"times, (\d+) of them at work; took", said)
        self.assertTrue(summary, done.stdout)
        usage = re.search(r"of which (\d+) were evicted: (\d+) of the trainings, (\d+) of the "
                          "search;", said)
        self.assertTrue(usage, done.stdout)
        # All counts of evictions agree.
        trainings, at_work = map(int, summary.groups())
        everything, of_trainings, of_search = map(int, usage.groups())
        self.assertEqual((everything, of_trainings), (trainings + of_search, trainings))
        self.assertLessEqual(at_work, trainings)
        self.assertIn("; evictions: %d." % of_search, said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
