"""The real program on the real letters: a run that is evicted several times ends with the same
output and bit-identical weights as an undisturbed one."""

import os
import signal
import subprocess
import sys
import unittest

try:
    import numpy
except ImportError:
    numpy = None

from sublet import checkpoint
from sublet.testing import PATIENCE, Case, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
LETTERS = os.path.join(HERE, "..", "back-propagation", "letter-recognition.data")


@unittest.skipUnless(numpy, "skipped: NumPy is not installed")
class InterruptionTest(Case):
    def start(self, weights, *arguments):
        return subprocess.Popen(
            [sys.executable, "-B", os.path.join(HERE, "training.py"), "--data", LETTERS, "--epochs",
             "6", "--weights", os.path.join(self.folder, weights), *arguments],
            # Sums in another order, on another number of cores, would give other bits.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process):
        """(exit status, stdout, stderr)"""
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return process.returncode, out, err

    def test_evicted_run_is_identical(self):
        status, expected, err = self.end(self.start("whole"))
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(expected, r"^epochs 6\ntraining correctness 0\.[4-9]")
        page = self.enter_pool()
        for number, target in enumerate((1000, 100000, 110000, 300000), 1):
            process = self.start("evicted")
            wait_for(lambda: process.poll() is not None or page["aware"] and
                     not page["left"] and page["progress_ppm"] >= target, "progress %d" % target)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(self.end(process), (checkpoint.EXIT_LEFT, "", ""))
            self.assertEqual((page["left"], page["generation"], page["resumed_generation"]),
                             (1, number, number - 1))
        self.assertEqual(self.end(self.start("evicted")), (0, expected, ""))
        self.assertEqual(page["resumed_generation"], 4)
        self.assertEqual(self.read("evicted"), self.read("whole"))

    def test_another_seed_is_refused(self):
        page = self.enter_pool()
        process = self.start("one")
        wait_for(lambda: process.poll() is not None or page["aware"], "an answer")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(process)[0], checkpoint.EXIT_LEFT)
        self.assertEqual(self.end(self.start("one", "--seed", "2")),
                         (1, "", "training.py: the checkpoint was made with another --seed\n"))


if __name__ == "__main__":
    unittest.main()
