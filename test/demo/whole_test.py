"""The demonstration itself, with --fast unless `slow` is given: all results are
identical.

usage: whole_test.py [slow]"""

import os
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
        self.assertIn("demo: 8 of 8 results identical", done.stdout)
        self.assertIn(", 0 lost;", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
