"""The example of a shell script that saves its variables: interrupted again and again, it prints
what an undisturbed run prints."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

SCRIPT = os.path.join(harness.ROOT, "examples", "shell-loop", "collatz.sh")
INTERRUPTIONS = 4


def handles_term(pid):
    """Whether the process has a handler of SIGTERM, or has ended."""
    try:
        with open("/proc/%d/status" % pid) as status:
            facts = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError):
        return True
    return facts["State"][0] == "Z" or int(facts["SigCgt"], 16) >> signal.SIGTERM - 1 & 1 == 1


class ShellLoop(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sl-loop-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {"PATH": harness.BIN + ":" + os.environ["PATH"], "HOME": self.folder}

    def start(self, part="1", size="100", **environment):
        return subprocess.Popen([SCRIPT, part, size], cwd=self.folder, text=True,
                                env={**self.environment, **environment},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finished(self, script):
        try:
            out, err = script.communicate(timeout=harness.PATIENCE)
        finally:
            script.kill()
            script.wait()
        return script.returncode, out, err

    def sublet(self, *words):
        return subprocess.run([os.path.join(harness.BIN, "sublet"), "checkpoint", *words],
                              cwd=self.folder, env=self.environment, text=True, check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout

    def interrupted_run(self, file, **environment):
        """Asks each of its runs to leave as soon as it can hear it; the last one may end."""
        seen = set()
        for generation in range(1, INTERRUPTIONS + 1):
            script = self.start(**environment)
            harness.wait_for(lambda: handles_term(script.pid), "the trap to be set")
            script.send_signal(signal.SIGTERM)
            self.assertEqual(self.finished(script), (75, "", ""))
            self.assertIn("generation  %d\n" % generation, self.sublet("show", file))
            seen.add(self.sublet("show", file, "--values", "n"))
        self.assertEqual(len(seen), INTERRUPTIONS, "each run got further than the one before")
        return self.finished(self.start(**environment))

    def steps(self, n):
        steps = 0
        while n != 1:
            n = 3 * n + 1 if n % 2 else n // 2
            steps += 1
        return steps

    def test_interrupted_and_undisturbed_runs_agree(self):
        whole = self.finished(self.start())
        all_steps = {n: self.steps(n) for n in range(101, 201)}
        longest = max(all_steps, key=all_steps.get)
        self.assertEqual(whole, (0, "%d steps; the longest sequence is that of %d with %d\n" % (
            sum(all_steps.values()), longest, all_steps[longest]), ""))
        self.assertEqual(self.interrupted_run("collatz-1-100.checkpoint"), whole)
        self.assertEqual(os.listdir(self.folder), [], "it removes its own files at the end")

    def test_killed_it_keeps_what_it_saved_by_itself(self):
        """It begins at 1991, and saves at 2000 and not again before its end."""
        script = self.start("1", "1990")
        file = os.path.join(self.folder, "collatz-1-1990.checkpoint")
        harness.wait_for(lambda: os.path.exists(file) or script.poll() is not None, "it to save")
        script.kill()
        self.finished(script)
        self.assertEqual(script.returncode, -signal.SIGKILL)
        self.assertIn("n='2000'\n", self.sublet("load", "--program", "collatz", "--path", file))

    def test_as_in_a_pool(self):
        """There the folder is the pool's, and so is what remains in it."""
        whole = self.finished(self.start())
        pool = os.path.join(self.folder, "pool")
        os.mkdir(pool)
        self.assertEqual(self.interrupted_run("pool/checkpoint", SUBLET_CHECKPOINT_DIR=pool), whole)
        self.assertEqual(sorted(os.listdir(pool)), ["checkpoint", "checkpoint.previous"])


if __name__ == "__main__":
    unittest.main()
