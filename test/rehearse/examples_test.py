"""`sublet rehearse` passes the examples, each with little to do."""

import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

EXAMPLES = os.path.join(harness.ROOT, "examples")
LETTERS = os.path.join(EXAMPLES, "back-propagation", "letter-recognition.data")
HEAT = os.path.join(harness.BIN, "heat")


def has_numpy():
    return subprocess.run(["/usr/bin/python3", "-c", "import numpy"],
                          stderr=subprocess.DEVNULL).returncode == 0


class Rehearsed(unittest.TestCase):
    def passes(self, *words):
        """The report for a person. Where all interruptions came before the program could save, it
        is rehearsed with others."""
        for seed in range(1, 21):
            done = subprocess.run([os.path.join(harness.BIN, "sublet"), "rehearse", "--runs", "4",
                                   "--seed", str(seed), *words],
                                  text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=harness.PATIENCE)
            if not done.stdout.startswith("failed: it never saved"):
                break
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("passed: 4 interrupted runs ended as the undisturbed one did\n", done.stdout)
        self.assertRegex(done.stdout, r"\n  *4  from the older generation  .* same\n")
        return done.stdout


class Examples(Rehearsed):
    def test_shell_loop(self):
        report = self.passes("--env", "PATH=%s:%s" % (harness.BIN, os.environ["PATH"]), "--",
                             os.path.join(EXAMPLES, "shell-loop", "collatz.sh"), "1", "300")
        self.assertNotIn("safe point", report)

    def test_back_propagation(self):
        report = self.passes("--input", LETTERS, "--output", "weights", "--",
                             os.path.join(harness.BIN, "back-propagation"), "--data",
                             "letter-recognition.data", "--epochs", "1", "--weights", "weights")
        self.assertRegex(report, r"exit status 0, \d+ safe points\n")

    def test_code_breaking(self):
        self.passes("--output", "key?", "--", os.path.join(harness.BIN, "code-breaking"),
                    "--plaintext", "54686520756e6b6e6f776e206d6573736167652069733a20",
                    "--ciphertext", "b40a5388b13882ad930da8b61e51a3b1ffaee1d814a5fa15",
                    "--iv", "f675171a59b7ead0", "--first-key", "2000000000",
                    "--last-key", "2000ffffff", "--part", "0", "--of", "1", "--found", "key")

    def test_monte_carlo(self):
        self.passes("--", os.path.join(harness.BIN, "monte-carlo"), "3", "20000000", "7")

    def test_n_queens(self):
        self.passes("--", os.path.join(harness.BIN, "n-queens"), "15", "3")

    def test_stencil(self):
        self.passes("--output", "plate", "--", os.path.join(harness.BIN, "stencil"), "64", "4000",
                    "2", "plate")

    @unittest.skipUnless(os.path.exists(HEAT), "skipped: a Fortran compiler is not installed")
    def test_heat(self):
        self.passes("--output", "plate", "--", HEAT, "16", "20000", "plate")

    @unittest.skipUnless(has_numpy(), "skipped: NumPy is not installed")
    def test_python_training(self):
        self.passes("--env", "PYTHONPATH=" + os.path.join(harness.ROOT, "python"),
                    "--env", "OPENBLAS_NUM_THREADS=1", "--env", "PYTHONDONTWRITEBYTECODE=1",
                    "--input", LETTERS,
                    "--input", os.path.join(EXAMPLES, "python-training", "training.py"),
                    "--output", "weights", "--", "/usr/bin/python3", "training.py", "--data",
                    "letter-recognition.data", "--epochs", "1", "--weights", "weights")


class Readme(Rehearsed):
    def test_pi(self):
        """All but the line that says where it begins."""
        report = self.passes("--compare", "bash -c 'cmp <(tail -n +2 $0/stdout) "
                             "<(tail -n +2 $1/stdout)'", "--", os.path.join(harness.BIN, "pi"))
        self.assertIn("exit status 0, 1000000000 safe points\n", report)


class AnyProgram(Rehearsed):
    """Programs that save themselves, and know nothing of Sublet. (John the Ripper keeps what it has
    found in the home of whoever runs it: only a pool's job begins without.)"""

    @unittest.skipUnless(shutil.which("ddrescue"), "skipped: ddrescue is not installed")
    def test_a_copier(self):
        self.passes("--input", LETTERS + "=disk", "--checkpoint", "copy", "--checkpoint", "map",
                    "--output", "copy", "--", "ddrescue", "--quiet", "--cluster-size=8",
                    "--max-read-rate=256Ki", "disk", "copy", "map")

    def test_a_chain_of_steps(self):
        self.passes("--input", os.path.join(EXAMPLES, "any-program", "Makefile"),
                    "--input", LETTERS + "=letters", "--checkpoint", "part-*",
                    "--output", "summary", "--", "make", "--silent", "summary")


if __name__ == "__main__":
    unittest.main()
