"""Programs from Debian that save themselves, each evicted ten times: GNU ddrescue, make and John the
Ripper end with the same results as undisturbed."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

EXAMPLES = os.path.join(harness.ROOT, "examples", "any-program")
LETTERS = os.path.join(harness.ROOT, "examples", "back-propagation", "letter-recognition.data")
EVICTIONS = 10


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


class UnchangedPrograms(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.curly = self.pool.client("curly").start()
        self.pool.wait_machines(1)
        self.here = tempfile.mkdtemp(prefix="sublet-undisturbed-")
        self.addCleanup(shutil.rmtree, self.here)

    def needs(self, program):
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
            self.skipTest("skipped: %s is not installed" % program)

    def work_folder(self, job):
        attempt = "%d.%d" % (job, self.pool.job(job)["attempts"])
        return os.path.join(self.curly.state, "attempts", attempt, "work")

    def saved(self, job, folder):
        """What the files in which it saves itself look like."""
        patterns = self.pool.job(job)["description"]["checkpoint"]["files"]
        found = {}
        try:
            for entry in os.scandir(folder):
                if any(entry.name.startswith(one.rstrip("*")) for one in patterns):
                    found[entry.name] = (entry.stat().st_size, entry.stat().st_mtime_ns)
        except FileNotFoundError:
            pass  # it moves
        return found

    def cpu_seconds(self, job, folder):
        """Whole ones that its attempt has used: for a program that saves only when it ends."""
        record = self.curly.record(os.path.basename(os.path.dirname(folder))) or {}
        return harness.cpu_ticks(int(record.get("job_pid", 0))) // os.sysconf("SC_CLK_TCK")

    def evict_in_mid_run(self, job, reached):
        self.pool.wait_state(job, "running")
        folder = self.work_folder(job)
        before = reached(job, folder)
        wait_for(lambda: reached(job, folder) != before,
                 lambda: "the program to do something\n" + self.pool.all_logs())
        self.curly.owner("active")
        wait_for(lambda: not self.curly.attempts(),
                 lambda: "the job to leave\n" + self.pool.all_logs())
        self.curly.owner("away")

    def run_it(self, example, reached=None):
        """`reached` tells by another value that the attempt has done something."""
        job = self.pool.submit(os.path.join(EXAMPLES, example))[0]
        for _ in range(EVICTIONS):
            self.evict_in_mid_run(job, reached or self.saved)
        shown = self.pool.wait_state(job, ["done", "failed", "held"])
        self.assertEqual(shown["state"], "done", "%s\n%s" % (shown, self.pool.run("logs", job, "--both")))
        self.assertEqual([one["ended"] for one in shown["attempt_list"]],
                         ["owner came back"] * EVICTIONS + ["done"])
        # They went on where the one before was; some had nothing new to save.
        generations = [one["generation"] for one in shown["attempt_list"][:EVICTIONS]]
        self.assertGreaterEqual(sum(one > 0 for one in generations), EVICTIONS // 2, generations)
        status, _, err = self.pool.run("fetch", job, "--into", os.path.join(self.here, "fetched"))
        self.assertEqual(status, 0, err)

    def undisturbed(self, *command):
        subprocess.run(command, cwd=self.here, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def test_a_copier(self):
        self.needs("ddrescue")
        self.run_it("ddrescue.toml")
        self.assertEqual(read(self.here, "fetched", "copy"), read(LETTERS))

    def test_a_chain_of_steps(self):
        self.run_it("make.toml")
        shutil.copy(os.path.join(EXAMPLES, "Makefile"), self.here)
        shutil.copy(LETTERS, os.path.join(self.here, "letters"))
        self.undisturbed("make", "--silent", "summary")
        self.assertEqual(read(self.here, "fetched", "summary"), read(self.here, "summary"))

    def test_a_search(self):
        self.needs("john")
        if os.geteuid() != 0:
            self.skipTest("skipped: only a slot's own account has no home that John would look for")
        self.run_it("john.toml", self.cpu_seconds)
        known = dict(letters="lemons", photos="tango")
        expected = ""
        for line in read(EXAMPLES, "forgotten").decode().splitlines():
            name, hashed = line.split(":")
            expected += "%s:%s\n" % (hashed, known.pop(name))
        self.assertEqual(known, {})
        self.assertEqual(read(self.here, "fetched", ".john", "john.pot").decode(), expected)


if __name__ == "__main__":
    unittest.main()
