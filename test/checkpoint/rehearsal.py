"""What the tests of the examples share: a program runs as in a pool, is interrupted at instants
that a seed chooses, and ends with the results of an undisturbed run."""

import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

LEFT = 75
# Instants, in millionths of the run. After them enough is left to do that a test which the machine
# delays still interrupts it.
EARLIEST, LATEST = 20000, 550000


class Rehearsal(unittest.TestCase):
    program = None  # its path

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sublet-example-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.page = self.path("status")
        self.clear_page()
        self.alone = {k: v for k, v in os.environ.items() if not k.startswith("SUBLET_")}
        self.pool = dict(self.alone, SUBLET_CHECKPOINT_DIR=self.folder, SUBLET_STATUS=self.page)

    def path(self, name):
        return os.path.join(self.folder, name)

    def contents(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def clear_page(self):
        """As before each attempt."""
        with open(self.page, "wb") as f:
            f.write(bytes(4096))

    def status(self):
        """aware, left, generation, progress in millionths: docs/checkpoint-api.md."""
        with open(self.page, "rb") as f:
            page = f.read(80)
        return struct.unpack_from("=II", page, 8) + struct.unpack_from("=Q", page, 16) + \
            struct.unpack_from("=i", page, 48)

    def start(self, words, environment):
        """Its output goes to the file `stdout`."""
        with open(self.path("stdout"), "wb") as out:
            process = subprocess.Popen([self.program] + list(words), env=environment, stdout=out,
                                       stdin=subprocess.DEVNULL, cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def refused(self, words, environment):
        """(exit status, stderr) of a run that ends at once."""
        done = subprocess.run([self.program] + list(words), env=environment, text=True,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.folder,
                              timeout=harness.PATIENCE)
        return done.returncode, done.stderr

    def result(self, words, environment, results=("stdout",)):
        """What a run leaves in these files that is not interrupted."""
        self.assertEqual(self.start(words, environment).wait(harness.PATIENCE), 0)
        return [self.contents(name) for name in results]

    def interrupt(self, words, instant):
        """Whether it left when it was asked to, at that instant or later."""
        self.clear_page()
        process = self.start(words, self.pool)
        harness.wait_for(lambda: process.poll() is not None or
                         self.status()[0] == 1 and self.status()[3] >= instant,
                         "the program to come so far")
        process.send_signal(signal.SIGTERM)
        status = process.wait(harness.PATIENCE)
        if status == LEFT:
            return True
        # It has just finished: it ended by itself, or died of the signal like any program.
        self.assertIn(status, (0, -signal.SIGTERM))
        self.assertEqual(self.status()[0], 0)
        return False

    def rehearse(self, each, results=("stdout",), seed=1, most_bytes=4096):
        """`each`: the words of the first attempt, the second, ... and of the last, which ends."""
        whole = self.result(each[0], self.alone, results)
        instants = sorted(random.Random(seed).sample(range(EARLIEST, LATEST), len(each) - 1))
        reached = -1
        for generation, (words, instant) in enumerate(zip(each, instants), 1):
            left = self.interrupt(words, instant)
            self.assertTrue(left or generation > 1, "never interrupted")
            if not left:
                break
            _, said_so, saved, ppm = self.status()
            self.assertEqual((said_so, saved), (1, generation))
            self.assertGreaterEqual(ppm, max(reached, instant))
            self.assertLessEqual(os.path.getsize(self.path("checkpoint")), most_bytes)
            reached = ppm
        self.assertEqual(self.result(each[-1], self.pool, results), whole)
        return whole

    def rehearse_without_pool(self, words, results=("stdout",)):
        """`words` end with the file to save to, `saved`."""
        self.clear_page()
        process = self.start(words, dict(self.alone, SUBLET_STATUS=self.page))
        harness.wait_for(lambda: self.status()[3] > 0, "the program to work")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(harness.PATIENCE), LEFT)
        self.assertTrue(os.path.exists(self.path("saved")))
        self.result(words, self.alone, results)
        self.assertFalse(os.path.exists(self.path("saved")))
