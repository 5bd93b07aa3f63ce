"""A checkpoint goes from machine to machine: saved on one architecture, resumed on another, one
of them with the other byte order, from C and from Python. The other machines are user-mode
emulators. Whatever the way, the result is that of an undisturbed run."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "machines")
API = os.path.join(harness.ROOT, "checkpoint-api")
SOURCES = [os.path.join(API, name) for name in os.listdir(API) if name.endswith(".c")]
# Debian's name of the architecture, the machine's.
MACHINES = [("arm64", "aarch64"), ("s390x", "s390x")]
STEPS = 300
LEFT = 75


def emulator(machine):
    return shutil.which("qemu-" + machine)


def missing():
    """Debian packages, of those that are needed."""
    needed = [("qemu-user", emulator(machine)) for _, machine in MACHINES]
    for debian, machine in MACHINES:
        needed += [("gcc-%s-linux-gnu" % machine, shutil.which(machine + "-linux-gnu-gcc")),
                   ("libc6-dev-%s-cross" % debian,
                    os.path.exists("/usr/%s-linux-gnu/include/stdio.h" % machine))]
    return sorted({package for package, present in needed if not present})


@unittest.skipIf(missing(), "skipped: not installed: %s" % " ".join(missing()))
class Machines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="sublet-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.walks = {"c": [cls.compiled("cc", "walk")]}
        cls.walks["python"] = [sys.executable, "-B", os.path.join(HERE, "walk.py")]
        for _, machine in MACHINES:
            program = cls.compiled(machine + "-linux-gnu-gcc", "walk-" + machine)
            cls.walks["c " + machine] = [emulator(machine), "-L", "/usr/%s-linux-gnu" % machine,
                                         program]
        cls.reference = cls.walked("c", "reference", 0)[1]
        assert len(cls.reference.splitlines()) == 42, cls.reference

    @classmethod
    def compiled(cls, compiler, name):
        program = os.path.join(cls.folder, name)
        subprocess.run([compiler, "-std=gnu99", "-O2", "-ffp-contract=off", "-I", harness.ROOT, "-I",
                        API, "-o", program, os.path.join(HERE, "walk.c")] +
                       SOURCES + ["-pthread"], check=True)
        return program

    @classmethod
    def walked(cls, walk, checkpoint, leave):
        """(exit status, output)"""
        words = cls.walks[walk] + [os.path.join(cls.folder, checkpoint), str(STEPS)]
        done = subprocess.run(words + ([str(leave)] if leave else []),
                              env={**os.environ, "PYTHONPATH": os.path.join(harness.ROOT, "python")},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              timeout=harness.PATIENCE)
        return done.returncode, done.stdout

    def travel(self, checkpoint, walks):
        """Each of them but the last leaves; the result is that of an undisturbed run."""
        for number, walk in enumerate(walks[:-1], 1):
            self.assertEqual(self.walked(walk, checkpoint, number * STEPS // len(walks)),
                             (LEFT, ""), (number, walk))
            self.assertTrue(os.path.exists(os.path.join(self.folder, checkpoint)), walk)
        self.assertEqual(self.walked(walks[-1], checkpoint, 0), (0, self.reference), walks)

    def ends_everywhere(self, checkpoint, walks, first):
        """Saved by the first; each of the others ends it alone."""
        self.assertEqual(self.walked(first, checkpoint, STEPS // 2), (LEFT, ""))
        for walk in walks:
            copy = checkpoint + "-" + walk.replace(" ", "-")
            shutil.copy(os.path.join(self.folder, checkpoint), os.path.join(self.folder, copy))
            self.assertEqual(self.walked(walk, copy, 0), (0, self.reference), (first, walk))

    def test_c(self):
        self.travel("c", ["c", "c s390x", "c aarch64", "c", "c aarch64", "c s390x", "c"])
        for first in "c", "c s390x":
            self.ends_everywhere("from " + first, ["c", "c aarch64", "c s390x"], first)

    def test_c_and_python(self):
        self.travel("both", ["python", "c s390x", "python", "c aarch64", "python", "c"])

    def test_python(self):
        for debian, machine in MACHINES:
            root = os.path.join(os.path.dirname(harness.BIN), "machines", debian)
            got = subprocess.run([os.path.join(HERE, "debian_python"), debian, root],
                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if got.returncode != 0:
                self.skipTest("skipped: no Python for %s: %s" % (debian, got.stderr.strip()))
            self.walks["python " + machine] = [
                emulator(machine), "-L", root, os.path.join(root, "usr", "bin", "python3"), "-B",
                os.path.join(HERE, "walk.py")]
        self.travel("python", ["python", "python s390x", "python aarch64", "python s390x",
                               "c s390x", "python aarch64", "c", "python s390x", "python"])
        self.ends_everywhere("from python", ["python s390x", "python aarch64"], "python")


if __name__ == "__main__":
    unittest.main()
