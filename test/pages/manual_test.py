"""The manual pages contain every option in --help, the formatter prints no warnings, and
texts taken from docs/ are up to date."""

import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

DOCS = os.path.join(harness.ROOT, "docs")
HEADER = os.path.join(harness.ROOT, "checkpoint-api", "sublet_checkpoint.h")
PROGRAMS = {"sublet": 1, "sublet-server": 8, "sublet-client": 8, "sublet-loadmon": 8,
            "sublet-agent": 1}
WRITTEN = [("batch-files.md", "sublet-batch", "5"), ("checkpoint-api.md", "sublet-checkpoint", "7"),
           ("shepherd.md", "sublet-shepherd", "8")]


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=harness.PATIENCE).stdout


def program(name, *words):
    return output(os.path.join(harness.BIN, name), *words)


def page(name):
    return program(name, "--manual-page")


def written(source, name, section):
    return output(sys.executable, os.path.join(DOCS, "markdown_to_man.py"),
                  os.path.join(DOCS, source), name, section, "1", "in short")


def of_header():
    return output(sys.executable, "-B", os.path.join(DOCS, "header_to_man.py"), HEADER,
                  "sublet_checkpoint", "1", "in short")


def plain(roff):
    return re.sub(r"\\f[BIR]", "", roff).replace("\\-", "-")


def commands_of(name):
    """Every command by its words, the program itself first."""
    found = [[]]
    for words in found:
        listed = program(name, *words, "--help").partition("Subcommands:\n")[2]
        found += [words + [command] for command in re.findall(r"^  (\S+)", listed, re.M)]
    return found


class Manual(unittest.TestCase):
    def test_every_option_is_there(self):
        for name in PROGRAMS:
            text = plain(page(name))
            seen = 0
            for words in commands_of(name):
                for option in re.findall(r"^  (-\S+)", program(name, *words, "--help"), re.M):
                    for spelling in option.split(","):
                        self.assertTrue(re.search(r"(?m)^(-., )?%s\b" % re.escape(spelling), text),
                                        "%s %s: %s" % (name, " ".join(words), spelling))
                        seen += 1
            self.assertGreater(seen, 3, name)
        self.assertGreater(len(commands_of("sublet")), 15)

    def test_every_setting_is_there(self):
        for name in ("sublet-server", "sublet-client", "sublet-loadmon"):
            text = plain(page(name))
            table = ""
            for line in program(name, "--print-settings").splitlines():
                if line.startswith("["):
                    table = line.strip("[]") + "."
                elif line and not line.startswith("#"):
                    key = table + line.split(" =")[0]
                    self.assertTrue("\n%s\n" % key in text, key)

    def test_exit_statuses_are_those_of_the_docs(self):
        with open(os.path.join(DOCS, "command.md")) as f:
            documented = f.read().partition("## Exit status")[2].partition("\n## ")[0]
        documented = re.findall(r"^\| ([\d, ]+) \|", documented, re.M)
        section = plain(page("sublet")).partition(".SH EXIT STATUS")[2].partition(".SH")[0]
        listed = re.findall(r"^([\d, ]+)$", section, re.M)
        numbers = [sorted(re.findall(r"\d+", " ".join(lines))) for lines in (documented, listed)]
        self.assertEqual(numbers[0], numbers[1])
        self.assertIn("124", numbers[0])

    def test_every_call_is_there(self):
        with open(HEADER) as f:
            calls = re.findall(r"^[\w ]+[ *](sublet_checkpoint_\w+)\(", f.read(), re.M)
        self.assertGreater(len(calls), 15)
        text = plain(of_header())
        for call in calls:
            self.assertTrue(re.search(r"(?m)^[\w* ]*\b%s\(" % call, text), call)

    @unittest.skipUnless(shutil.which("groff"), "needs groff (package groff-base)")
    def test_formatter_has_no_complaint(self):
        pages = {name: page(name) for name in PROGRAMS}
        pages.update((names[1], written(*names)) for names in WRITTEN)
        pages["sublet_checkpoint"] = of_header()
        for name, roff in pages.items():
            done = subprocess.run(["groff", "-k", "-t", "-man", "-ww", "-z", "-Tutf8"], input=roff,
                                  capture_output=True, text=True, timeout=harness.PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    @unittest.skipUnless(shutil.which("man"), "needs man (package man-db)")
    def test_reads_well(self):
        done = subprocess.run(["man", "--warnings", "-l", "-"], input=page("sublet"), text=True,
                              capture_output=True, timeout=harness.PATIENCE,
                              env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for line in (r"   sublet submit \[OPTIONS\] \[FILE.toml\]", r"       --tail N$",
                     r"       sublet - submits jobs to a pool"):
            self.assertTrue(re.search("(?m)^" + line, done.stdout), line)


if __name__ == "__main__":
    unittest.main()
