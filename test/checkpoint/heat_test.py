"""The Fortran example, interrupted several times: its output does not change by a byte."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from rehearsal import Rehearsal

STEPS = "1500000"


@unittest.skipUnless(os.path.exists(os.path.join(harness.BIN, "heat")),
                     "heat is not built: no Fortran compiler")
class Heat(Rehearsal):
    program = os.path.join(harness.BIN, "heat")

    def words(self, output, *more):
        return ["32", STEPS, output] + list(more)

    def test_interrupted_run_is_identical(self):
        plate, = self.rehearse([self.words("plate")] * 5, ["plate"], most_bytes=32 * 32 * 8 + 1024)
        self.assertEqual(plate.count(b"\n"), 32)

    def test_nothing_is_written_by_one_that_leaves(self):
        self.assertTrue(self.interrupt(self.words("plate"), 1))
        self.assertFalse(os.path.exists(self.path("plate")))

    def test_another_plate_is_refused(self):
        self.assertTrue(self.interrupt(self.words("plate"), 1))
        status, said = self.refused(["33", STEPS, "other"], self.pool)
        self.assertEqual(status, 1)
        self.assertIn('section "plate" has 1024 elements', said)

    def test_without_a_pool(self):
        self.rehearse_without_pool(self.words("alone", "saved"), ["alone"])

    def test_wrong_usage(self):
        for words in ([], ["1", "2", "x"], ["a", "2", "x"], ["5", "0", "x"]):
            status, said = self.refused(words, self.alone)
            self.assertEqual((status, said.split()[0]), (2, "usage:"))


if __name__ == "__main__":
    unittest.main()
