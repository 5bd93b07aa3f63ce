"""The options of `submit` and the keys of batch files say the same."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

SUBLET = os.path.join(harness.BIN, "sublet")
READER = os.path.join(harness.ROOT, "cli", "batch", "file.cc")

# Every key of a job: a use of it in a batch file, and the same on the command line.
USES = {
    "name": ('name = "n"', ["--name", "n"]),
    "program": ('program = "./tool"', ["./tool"]),
    "arguments": ('arguments = ["-a", "b c"]', ["--", "x", "-a", "b c"]),
    "environment": ('environment = { A = "1" }', ["--env", "A=1"]),
    "inputs.file": ('inputs = ["data"]', ["--input", "data"]),
    "inputs.name": ('inputs = [{ file = "data", name = "d/e" }]', ["--input", "data=d/e"]),
    "inputs.executable": ('inputs = [{ file = "tool", executable = true }]',
                          ["--executable", "tool"]),
    "stdin": ('stdin = "data"', ["--stdin", "data"]),
    "outputs.name": ('outputs = ["o"]', ["--output", "o"]),
    "outputs.required": ('outputs = [{ name = "o", required = false }]', ["--output", "o?"]),
    "needs.os": ('needs = { os = "linux" }', ["--os", "linux"]),
    "needs.architecture": ('needs = { architecture = "x86_64" }', ["--architecture", "x86_64"]),
    "needs.cores": ("needs = { cores = 2 }", ["--cores", "2"]),
    "needs.memory": ('needs = { memory = "2 GiB" }', ["--memory", "2 GiB"]),
    "needs.disk": ('needs = { disk = "1 GB" }', ["--disk", "1 GB"]),
    "needs.require": ('needs = { require = "cores > 1" }', ["--require", "cores > 1"]),
    "needs.prefer": ('needs = { prefer = "memory_mb" }', ["--prefer", "memory_mb"]),
    "needs.resources": ("needs = { resources = { gpu = 1, ansys = 2 } }",
                        ["--resource", "gpu=1", "--resource", "ansys=2"]),
    "limits.cpu": ('limits = { cpu = "1 h" }', ["--cpu-limit", "1 h"]),
    "limits.wall": ("limits = { wall = 90 }", ["--wall-limit", "90"]),
    "limits.memory": ('limits = { memory = "1 GiB" }', ["--memory-limit", "1 GiB"]),
    "limits.output_text": ('limits = { output_text = "1 MB" }', ["--output-text-limit", "1 MB"]),
    "limits.output_file": ('limits = { output_file = "2 MB" }', ["--output-file-limit", "2 MB"]),
    "limits.processes": ("limits = { processes = 7 }", ["--processes-limit", "7"]),
    "even_so": ("even_so = true", ["--even-so"]),
    "retries": ("retries = 3", ["--retries", "3"]),
    "priority": ("priority = -4", ["--priority", "-4"]),
    "checkpoint": ('checkpoint = ["s-*", "d/"]', ["--checkpoint", "s-*", "--checkpoint", "d/"]),
    "checkpoint_every": ('checkpoint = "s"\ncheckpoint_every = "10 min"',
                         ["--checkpoint", "s", "--checkpoint-every", "10 min"]),
    "checkpoint_signal": ('checkpoint = "s"\ncheckpoint_signal = "USR1"',
                          ["--checkpoint", "s", "--checkpoint-signal", "sigusr1"]),
    "checkpoint_exit": ('checkpoint = "s"\ncheckpoint_exit = [3, 85]',
                        ["--checkpoint", "s", "--checkpoint-exit", "3", "--checkpoint-exit", "85"]),
    "leaving": ('leaving = "kill"', ["--leaving", "kill"]),
    "source.job": ('inputs = [{ job = 17, output = "o" }]', ["--input-from", "17:o"]),
    "source.output": ('inputs = [{ job = "17", output = "d/o" }]', ["--input-from", "17:d/o"]),
    "source.name": ('inputs = [{ job = 17, output = "o", name = "p" }]',
                    ["--input-from", "17:o=p"]),
    "after": ('after = [17, "20-29"]', ["--after", "17", "--after", "20-29"]),
    "after_any": ("after_any = [17]", ["--after-any", "17"]),
    "after_start": ("after_start = [17]", ["--after-start", "17"]),
    "network": ('network = "server"', ["--network", "server"]),
    "save_deadline": ('save_deadline = "5 s"', ["--save-deadline", "5 s"]),
    "hours": ('hours = "mon-fri 19:00-7:00,sat"', ["--hours", "Mon-Fri 19:00-07:00, sat"]),
    "not_before": ("not_before = 2026-12-01T18:00:00", ["--not-before", "2026-12-01 18:00"]),
    "count": ("count = 3", ["--count", "3"]),
    "parameters": ('arguments = ["{a}", "{b}"]\nparameters = { a = [1, "x"], b = { from = 2, to = 9 } }',
                   ["--parameter", 'a=[1, "x"]', "--parameter", "b={from = 2, to = 9}", "--", "x",
                    "{a}", "{b}"]),
    "table": ('arguments = ["{p}"]\ntable = "points.csv"',
              ["--table", "points.csv", "--", "x", "{p}"]),
}
STOPS = {
    "stop_when.done": ("done = 2", ["--stop-when", "done=2"]),
    "stop_when.failed": ("failed = 3", ["--stop-when", "failed=3"]),
    "stop_when.output": ('output = "o"', ["--stop-when", "output=o"]),
}


def keys_of_a_job():
    """The keys that the reader of batch files knows: "name", "needs.os", ..."""
    with open(READER) as f:
        source = f.read()
    keys = set()
    for name, body in re.findall(r"^[\w:]\S*(?: \S+)* (\w+)\([^;{]*\) \{\n(.*?)^\}", source,
                                 re.M | re.S):
        if name == "parse_batch":  # the tables of the file, not of a job
            continue
        table = name.removeprefix("read_") + "." if name not in ("job_keys", "read_job") else ""
        keys.update(table + key for key in re.findall(r'\{"(\w+)",\s*\[', body))
    # A table within each job.
    return keys - {"inputs", "outputs", "needs", "limits"}


class JobOptions(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sl-options-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in (("data", "d"), ("tool", "#!/bin/sh\n"), ("points.csv", "p,q\n1,2\n3,4\n")):
            with open(os.path.join(self.folder, name), "w") as f:
                f.write(text)

    def submit(self, *words):
        done = subprocess.run([SUBLET, "submit", "--dry-run", "--json"] + list(words), text=True,
                              cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=harness.PATIENCE)
        return done.returncode, json.loads(done.stdout)

    def planned(self, *words):
        status, plan = self.submit(*words)
        self.assertEqual(status, 0, (words, plan))
        return plan

    def write_batch(self, text):
        with open(os.path.join(self.folder, "b.toml"), "w") as f:
            f.write(text)
        return "b.toml"

    def test_every_key_has_an_option(self):
        self.assertEqual(keys_of_a_job(), set(USES) | set(STOPS))
        for key, (toml, words) in USES.items():
            if not toml.startswith("program"):
                toml = 'program = "x"\n' + toml
            if "--" not in words and key != "program":
                words = words + ["--", "x"]
            in_file = self.planned(self.write_batch("[[job]]\n" + toml + "\n"))
            with self.subTest(key):
                self.assertEqual(self.planned(*(words if "--" in words else ["--"] + words))["jobs"],
                                 in_file["jobs"])

    def test_stop_when(self):
        for key, (toml, words) in STOPS.items():
            in_file = self.planned(self.write_batch(
                '[batch]\nstop_when = { %s }\n[[job]]\nprogram = "x"\ncount = 5\n'
                'outputs = ["o"]\n' % toml))
            plan = self.planned(*words, "--count", "5", "--output", "o", "--by-job", "--wait", "--",
                                "x")
            self.assertEqual((plan["stop_when"], plan["jobs"]),
                             (in_file["stop_when"], in_file["jobs"]), key)

    def test_at_most(self):
        in_file = self.planned(self.write_batch('[batch]\nat_most = 2\n[[job]]\nprogram = "x"\n'
                                                'count = 5\n'))
        plan = self.planned("--at-most", "2", "--count", "5", "--", "x")
        self.assertEqual((plan["at_most"], plan["jobs"]), (2, in_file["jobs"]))
        self.assertEqual(in_file["at_most"], 2)

    def test_options_do_not_go_with_a_file(self):
        batch = self.write_batch('[[job]]\nprogram = "x"\n')
        for _, words in [*USES.values(), *STOPS.values(), ("", ["--at-most", "2"])]:
            words = words[:words.index("--")] if "--" in words else words
            if not words or not words[0].startswith("--") or words == ["--even-so"]:
                continue  # the program and its arguments; what may be said of a whole file
            status, answer = self.submit(*words, batch)
            self.assertEqual((status, answer["error"]["code"]), (2, "usage.submit"), words)
            self.assertIn("batch file", answer["error"]["message"], words)

    def test_a_limit_of_zero(self):
        """No limit and no need may be zero, in a file or on the command line."""
        for key, (toml, words) in USES.items():
            if not key.startswith(("limits.", "needs.", "save_deadline")) or \
                    key in ("needs.os", "needs.architecture", "needs.require", "needs.prefer",
                            "needs.resources"):
                continue  # texts and names
            with self.subTest(key):
                name = key.rpartition(".")[2]
                bound = r"(above 0|must be between 1 and \d+)"
                status, answer = self.submit(words[0], "0", "--", "x")
                self.assertEqual(status, 2, answer)
                self.assertRegex(answer["error"]["message"], r"\A%s\b.*%s" % (words[0], bound))
                assigned = re.sub(r"= [^={}]+?( }|$)", r"= 0\1", toml)
                self.assertIn(name + " = 0", assigned)
                status, answer = self.submit(self.write_batch(
                    '[[job]]\nprogram = "x"\n%s\n' % assigned))
                self.assertEqual(status, 3, answer)
                self.assertRegex(answer["error"]["message"], r"\b%s must be .*%s" % (
                    name, bound.replace("must be ", "")))

    def test_values_that_are_wrong(self):
        for words in (["--count", "0"], ["--count", "1000001"], ["--stop-when", "done=6"],
                      ["--stop-when", "done"], ["--stop-when", "done=0"], ["--stop-when", "never=1"],
                      ["--stop-when", "output=other"], ["--stop-when", "output=../o"],
                      ["--processes-limit", "100001"], ["--memory-limit", "much"],
                      ["--resource", "gpu"], ["--resource", "gpu=0"], ["--resource", "cores=2"],
                      ["--resource", "gpu=1", "--resource", "gpu=1"],
                      ["--save-deadline", "soon"], ["--save-deadline", "11 min"], ["--executable", "=x"],
                      ["--count", "3", "--parameter", "index=[1]"], ["--each", "--count", "3"]):
            more = [] if "--count" in words else ["--count", "5"]
            status, answer = self.submit(*words, *more, "--", "x")
            self.assertEqual((status, answer["error"]["code"]), (2, "usage.submit"), words)
        for words, part in ((["--parameter", "a=5"], "--parameter:1:3: the values of 'a'"),
                            (["--parameter", "a=["], "--parameter:1:"),
                            (["--parameter", "index=[1]"], "built-in"),
                            (["--table", "none.csv"], "none.csv")):
            status, answer = self.submit(*words, "--", "x", "{a}")
            self.assertEqual(status, 3, (words, answer))
            self.assertIn(part, answer["error"]["message"], words)
        status, answer = self.submit("--parameter", "rate=[1]", "--", "x", "{rats}")
        self.assertIn("did you mean {rate}", answer["error"]["message"])

    def test_misspelt_parameters_name_their_option(self):
        near = ": there is no parameter {rats}; did you mean {rate}?"
        fixed = " is the same for all jobs of an array: "
        for words, command, said in (
                (["--output", "o-{rats}"], ["x"], "--output" + near),
                (["--output", "o-{rats}?"], ["x"], "--output" + near),
                (["--env", "A={rats}"], ["x"], "--env" + near),
                (["--input", "in-{rats}"], ["x"], "--input" + near),
                (["--executable", "tool=in-{rats}"], ["x"], "--executable" + near),
                (["--stdin", "in-{rats}"], ["x"], "--stdin" + near),
                ([], ["x", "${rats} {rats}"], "PROGRAM" + near),
                (["--name", "{rats}"], ["x"], "--name: a job's name" + fixed +
                 "{rats} is not replaced in it"),
                (["--name", "n{rate}"], ["x"], "--name: a job's name" + fixed +
                 "{rate} is not replaced in it"),
                ([], ["{rate}"], "PROGRAM: a job's program" + fixed +
                 "{rate} is not replaced in it"),
                (["--parameter", "other=[1]"], ["x"], "--parameter: the parameter 'other' is not "
                 "used: write {other} in an argument, a variable or a file's name")):
            status, answer = self.submit("--parameter", "rate=[1, 2]", *words, "--", *command,
                                         "{rate}")
            self.assertEqual((status, answer["error"]["message"]), (2, said), words)
        for words in (["--name", "{indx}"], ["--output", "{indx}"]):
            self.assertEqual(self.submit(*words, "--count", "3", "--", "x")[0], 2, words)
            self.assertEqual(self.submit(*words, "--", "x")[0], 0, words)  # not an array
        status, answer = self.submit("--parameter", "rate=[1]", "--", "x", "${rats}", "{rate}")
        self.assertEqual(status, 0, answer)

    def test_misspelt_parameters_of_each_line(self):
        for words, option in ((["--output", "o-{lin}"], "--output"), (["--env", "A={lin}"], "--env"),
                              (["--name", "{line}"], "--name")):
            done = subprocess.run([SUBLET, "submit", "--dry-run", "--each"] + words + ["--", "x"],
                                  input="1\n2\n", text=True, capture_output=True, cwd=self.folder,
                                  timeout=harness.PATIENCE)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertTrue(done.stderr.startswith("sublet: %s: " % option), done.stderr)

    def test_inputs_of_an_array(self):
        for name in ("data-0", "data-1"):
            open(os.path.join(self.folder, name), "w").close()
        plan = self.planned("--count", "2", "--input", "data-{index}", "--", "cat", "data-{index}")
        self.assertEqual([job["description"]["inputs"][0]["name"] for job in plan["jobs"]],
                         ["data-0", "data-1"])


if __name__ == "__main__":
    unittest.main()
