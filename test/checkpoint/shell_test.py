"""`sublet checkpoint save` and `load` in shell scripts, with real signals; needs no server."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from files import STREAM, checkpoint

SUBLET = os.path.join(harness.BIN, "sublet")
SHELLS = [shell for shell in ("sh", "bash", "zsh", "ksh") if shutil.which(shell)]
# The trap of docs/checkpoint-api.md in a loop that never ends by itself.
LOOP = """
i=0
if state=$(sublet checkpoint load i); then eval "$state"; fi
trap 'sublet checkpoint save i="$i"; exit 75' TERM
echo "from $i"
first=$i
while :; do
  i=$((i + 1))
  [ "$i" -ne "$((first + 1))" ] || echo moved
done
"""


class Shell(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sl-shell-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {"PATH": harness.BIN + ":" + os.environ["PATH"], "HOME": self.folder,
                            "SUBLET_CHECKPOINT_DIR": self.folder}

    def run_it(self, *words, **environment):
        done = subprocess.run([SUBLET, "checkpoint", *words], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=harness.PATIENCE, env={**self.environment, **environment})
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    def shell(self, shell, script):
        return subprocess.run([shell, "-c", script], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=harness.PATIENCE)

    def test_the_documented_trap(self):
        """A loop is interrupted again and again, and goes on where it was."""
        at = 0
        for generation in range(1, 5):
            loop = subprocess.Popen(["sh", "-c", LOOP], cwd=self.folder, env=self.environment,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            try:
                self.assertEqual(loop.stdout.readline(), "from %d\n" % at)
                self.assertEqual(loop.stdout.readline(), "moved\n")
                loop.send_signal(signal.SIGTERM)
                loop.communicate(timeout=harness.PATIENCE)
            finally:
                loop.kill()
                loop.wait()
            self.assertEqual(loop.returncode, 75)
            loaded = json.loads(self.run_it("load", "--json")[1])
            self.assertEqual(loaded["generation"], generation)
            self.assertGreater(int(loaded["variables"]["i"]), at)
            at = int(loaded["variables"]["i"])

    def test_any_value_survives_eval(self):
        everything = bytes(range(1, 256))
        values = [b"", b"'", b"'; touch broken; '", b"$(touch broken)`touch broken`", b"\\",
                  b"a\nb\n\n", b"[1,2]", b"--json", b"~:~", b"*", everything, b"'" * 1000]
        names = ["v%d" % i for i in range(len(values))]
        words = [name.encode() + b"=" + value for name, value in zip(names, values)]
        self.assertEqual(self.run_it("save", *words), (0, b"", ""))
        for shell in SHELLS:
            with self.subTest(shell):
                done = self.shell(shell, "set -eu; state=$(sublet checkpoint load); "
                                  'eval "$state"; printf "%%s\\0" %s' %
                                  " ".join('"$%s"' % name for name in names))
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertEqual(done.stdout.split(b"\0")[:-1], values)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "broken")))

    def test_statuses(self):
        self.assertEqual(self.run_it("load"), (1, b"", ""))
        self.assertEqual(self.run_it("load", SUBLET_CHECKPOINT_DIR=""), (1, b"", ""))
        status, _, err = self.run_it("save", "i=1", SUBLET_CHECKPOINT_DIR="")
        self.assertEqual(status, 2)
        self.assertIn("--path FILE", err)
        self.assertEqual(self.run_it("save", "i=1")[0], 0)
        self.assertEqual(self.run_it("load"), (0, b"i='1'\n", ""))
        for words in (["load", "--program", "awk"], ["load", "--layout", "2"],
                      ["save", "--layout", "2", "i=2"]):
            status, out, err = self.run_it(*words)
            self.assertEqual((status, out, err.count("\n")), (3, b"", 1), words)
        self.assertEqual(self.run_it("load", "none")[0], 4)
        for words in (["save"], ["save", "i"], ["save", "1=1"], ["save", "i=1", "i=2"],
                      ["save", "--layout", "-1", "i=1"], ["save", "--path", "", "i=1"]):
            self.assertEqual(self.run_it(*words)[0], 2, words)
        self.assertEqual(self.run_it("load"), (0, b"i='1'\n", ""))

    def test_own_file_without_a_pool(self):
        del self.environment["SUBLET_CHECKPOINT_DIR"]
        for i in ("1", "2"):
            self.assertEqual(self.run_it("save", "--path", "own", "i=" + i)[0], 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["own", "own.previous"])
        self.assertEqual(self.run_it("load", "--path", "own"), (0, b"i='2'\n", ""))
        self.assertEqual(self.run_it("verify", "own", "own.previous")[0], 0)

    def test_hostile_checkpoint_is_not_loaded(self):
        for name in ("i;touch broken", "$(touch broken)", "i\ntouch broken\n"):
            with open(os.path.join(self.folder, "checkpoint"), "wb") as f:
                f.write(checkpoint([(name, STREAM, b"1")], "sh"))
            done = self.shell("sh", 'state=$(sublet checkpoint load); s=$?; eval "$state"; exit $s')
            self.assertEqual((done.returncode, done.stdout), (3, b""))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "broken")))

    def test_saves_at_the_same_time(self):
        """Each waits for the others: no number is given twice, and what remains is whole."""
        many = 20
        saves = [subprocess.Popen([SUBLET, "checkpoint", "save", "--json",
                                   "i=%d" % i + "x" * 100000], env=self.environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                 for i in range(many)]
        said = [json.loads(save.communicate(timeout=harness.PATIENCE)[0]) for save in saves]
        self.assertEqual(sorted(one["generation"] for one in said), list(range(1, many + 1)))
        self.assertEqual(self.run_it("verify", self.folder)[0], 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["checkpoint", "checkpoint.previous"])

    def test_the_status_page_is_the_pools(self):
        page = os.path.join(self.folder, "page")
        with open(page, "wb") as f:
            f.write(bytes(4096))
        self.assertEqual(self.run_it("save", "i=1", SUBLET_STATUS=page)[0], 0)
        with open(page, "rb") as f:
            self.assertEqual(f.read(), bytes(4096))


if __name__ == "__main__":
    unittest.main()
