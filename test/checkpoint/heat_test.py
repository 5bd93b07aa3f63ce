"""The Fortran example, interrupted several times: its output does not change by a byte."""

import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

HEAT = os.path.join(harness.BIN, "heat")
LEFT = 75
STEPS = "500000"


@unittest.skipUnless(os.path.exists(HEAT), "heat is not built: no Fortran compiler")
class Heat(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sublet-heat-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.page = self.path("status")
        with open(self.page, "wb") as f:
            f.write(bytes(4096))
        self.alone = {k: v for k, v in os.environ.items() if not k.startswith("SUBLET_")}
        self.pool = dict(self.alone, SUBLET_CHECKPOINT_DIR=self.folder, SUBLET_STATUS=self.page)

    def path(self, name):
        return os.path.join(self.folder, name)

    def status(self):
        """aware, left, generation, progress in millionths: docs/checkpoint-api.md."""
        with open(self.page, "rb") as f:
            page = f.read(80)
        return struct.unpack_from("=II", page, 8) + struct.unpack_from("=Q", page, 16) + \
            struct.unpack_from("=i", page, 48)

    def start(self, output, environment, *more):
        process = subprocess.Popen([HEAT, "32", STEPS, self.path(output)] + list(more),
                                   env=environment, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def contents(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def test_interrupted_run_is_identical(self):
        self.assertEqual(self.start("whole", self.alone).wait(harness.PATIENCE), 0)
        reached = 0
        for generation in range(1, 5):
            process = self.start("parts", self.pool)

            def works():
                aware, left, _, ppm = self.status()
                return aware == 1 and left == 0 and ppm > reached
            harness.wait_for(works, "the program to go on")
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(harness.PATIENCE), LEFT)
            _, left, saved, ppm = self.status()
            self.assertEqual((left, saved), (1, generation))
            self.assertGreater(ppm, reached)
            self.assertFalse(os.path.exists(self.path("parts")))
            reached = ppm
        self.assertEqual(self.start("parts", self.pool).wait(harness.PATIENCE), 0)
        self.assertEqual(self.contents("parts"), self.contents("whole"))
        self.assertEqual(self.contents("whole").count(b"\n"), 32)

    def test_another_plate_is_refused(self):
        process = self.start("parts", self.pool)
        harness.wait_for(lambda: self.status()[0] == 1, "the start")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.PATIENCE), LEFT)
        done = subprocess.run([HEAT, "33", STEPS, self.path("other")], env=self.pool, text=True,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn('section "plate" has 1024 elements', done.stderr)

    def test_without_a_pool(self):
        saved = self.path("saved")
        process = self.start("alone", dict(self.alone, SUBLET_STATUS=self.page), saved)
        harness.wait_for(lambda: self.status()[3] > 0, "the program to work")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.PATIENCE), LEFT)
        self.assertTrue(os.path.exists(saved))
        self.assertEqual(self.start("alone", self.alone, saved).wait(harness.PATIENCE), 0)
        self.assertFalse(os.path.exists(saved))

    def test_wrong_usage(self):
        for words in ([], ["1", "2", "x"], ["a", "2", "x"], ["5", "0", "x"]):
            done = subprocess.run([HEAT] + words, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr.split()[0]), (2, "usage:"))


if __name__ == "__main__":
    unittest.main()
