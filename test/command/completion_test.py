"""Completion in bash: the generated script in a real bash, by its function and by a TAB
typed on a terminal."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

SUBLET = os.path.join(harness.BIN, "sublet")
# The words as bash splits them: "=" is a separate word.
DRIVE = ("set -u; source <(%s completion bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
         "_sublet; printf '%%s\\n' \"${COMPREPLY[@]}\"" % SUBLET)


class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sl-tab-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        os.mkdir(os.path.join(self.folder, "results"))
        for name in ("letters.toml", "my data"):
            open(os.path.join(self.folder, name), "w").close()

    def offered(self, *words):
        done = subprocess.run(["bash", "-c", DRIVE, "bash", "sublet"] + list(words),
                              cwd=self.folder, capture_output=True, text=True,
                              timeout=harness.PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout.split("\n")[:-1] if done.stdout != "\n" else []

    def test_commands(self):
        help_text = subprocess.run([SUBLET, "--help"], capture_output=True, text=True).stdout
        listed = re.findall(r"^  (\S+)", help_text.partition("Subcommands:\n")[2], re.M)
        self.assertEqual(self.offered(""), listed)
        self.assertEqual(self.offered("su"), ["submit"])
        self.assertEqual(self.offered("--json", "su"), ["submit"])
        self.assertEqual(self.offered("--server", "submit", "li"), [])
        self.assertEqual(self.offered("--server", "/x", "mach"), ["machines"])
        self.assertEqual(self.offered("admin", "re"), ["resume", "revoke"])
        self.assertEqual(self.offered("nonsense", "su"), ["submit"])

    def test_options(self):
        self.assertEqual(self.offered("submit", "--retr"), ["--retries"])
        self.assertEqual(self.offered("ls", "--each-job", "--li"), ["--limit"])
        self.assertEqual(self.offered("admin", "invite", "--adm"), ["--administrator"])
        everywhere = ["--help", "--version", "--server", "--json", "--timeout"]
        for command in ([], ["about"], ["admin", "members"]):
            self.assertEqual(self.offered(*command, "--"), everywhere)
        # All options in --help.
        done = subprocess.run([SUBLET, "submit", "--help"], capture_output=True, text=True).stdout
        for option in re.findall(r"^  (?:-.,)?(--[a-z-]+)", done, re.M):
            self.assertIn(option, self.offered("submit", "--"))

    def test_values(self):
        self.assertEqual(self.offered("ls", "--state", "r"), ["running", "removed"])
        self.assertEqual(self.offered("ls", "--state", "=", "he"), ["held"])
        self.assertEqual(len(self.offered("rm", "--mine", "--state", "=")), 9)
        self.assertEqual(self.offered("report", "--by", "w"), ["week"])
        self.assertEqual(self.offered("report", "m"), ["machines"])
        self.assertEqual(self.offered("completion", ""), ["bash", "fish", "zsh"])
        self.assertEqual(self.offered("submit", "--name", "s"), [])
        self.assertEqual(self.offered("submit", "--name", "submit", "--retr"), ["--retries"])

    def test_files(self):
        self.assertEqual(self.offered("submit", "let"), ["letters.toml"])
        self.assertEqual(self.offered("submit", "--input", "my"), ["my data"])
        self.assertEqual(self.offered("submit", "--wait", "--into", ""), ["results"])
        self.assertEqual(sorted(self.offered("--server", "")), ["letters.toml", "my data",
                                                                "results"])

    def test_program_after_dashes(self):
        self.assertIn("printf", self.offered("submit", "--wait", "--", "print"))
        self.assertEqual(self.offered("submit", "--", "cat", "let"), ["letters.toml"])
        self.assertEqual(self.offered("submit", "--", "cat", "--retr"), [])
        self.assertEqual(self.offered("ls", "--", "print"), [])

    def at_a_terminal(self, shell, prepare, typed):
        """Types into an interactive shell; `typed`: pairs of keys and expected output."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.environ.update(PS1="$ ", TERM="dumb", HOME=self.folder,
                              PATH=harness.BIN + ":" + os.environ["PATH"])
            os.execvp(shell[0], shell)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.close, terminal)
        self.addCleanup(harness.kill, pid)
        for keys, brought in [(prepare + b"; echo rea''dy\n", b"ready\r\n")] + typed:
            os.write(terminal, keys)
            seen = b""
            end = time.monotonic() + harness.PATIENCE
            while brought not in seen:
                left = end - time.monotonic()
                self.assertTrue(left > 0 and select.select([terminal], [], [], left)[0],
                                (keys, brought, seen))
                seen += os.read(terminal, 4096)

    def test_a_tab_in_bash(self):
        self.at_a_terminal(["bash", "--norc", "--noprofile", "-i"],
                           b"source <(sublet completion bash)",
                           [(b"sublet machi\t", b"sublet machines "),
                            (b"\x15sublet submit let\t", b"letters.toml "),
                            (b"\x15sublet submit --input=my\t", b"my\\ data ")])

    @unittest.skipUnless(shutil.which("zsh"), "needs zsh")
    def test_a_tab_in_zsh(self):
        self.at_a_terminal(["zsh", "-f", "-i"],
                           b"autoload -U compinit; compinit -u; source <(sublet completion zsh)",
                           [(b"sublet machi\t", b"sublet machines "),
                            (b"\x15sublet ls --state he\t", b"held "),
                            (b"\x15sublet ls --state=he\t", b"=held "),
                            (b"\x15sublet admin rev\t", b"revoke "),
                            (b"\x15sublet submit let\t", b"letters.toml "),
                            (b"\x15sublet submit --input my\t", b"my\\ data ")])

    @unittest.skipUnless(shutil.which("fish"), "needs fish")
    def test_fish(self):
        def offered(line):
            done = subprocess.run(["fish", "-N", "-c", "%s completion fish | source; complete -C "
                                   "'%s'" % (SUBLET, line)], cwd=self.folder, capture_output=True,
                                  text=True, env={**os.environ, "HOME": self.folder})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return [word.split("\t")[0] for word in done.stdout.split("\n")[:-1]]

        self.assertEqual(offered("sublet machi"), ["machines"])
        self.assertEqual(offered("sublet admin re"), ["resume", "revoke"])
        self.assertEqual(offered("sublet ls --state he"), ["held"])
        self.assertEqual(offered("sublet submit --retr"), ["--retries"])
        self.assertEqual(offered("sublet submit --input let"), ["letters.toml"])
        self.assertEqual(offered("sublet submit let"), ["letters.toml"])
        self.assertEqual(offered("sublet show let"), [])


if __name__ == "__main__":
    unittest.main()
