"""Tests of the whole command: `python3 cli/command_test.py alone` needs no server;
`... pool` runs a private server and one workstation."""

import json
import os
import pty
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "test"))
import harness  # noqa: E402

SUBLET = os.path.join(harness.BIN, "sublet")
COMMANDS = ["submit", "ls", "show", "why", "logs", "wait", "fetch", "hold", "release", "priority", "rm",
            "machines", "report", "about", "completion"]


class Relay:
    """Stands between a command and the pool's server."""

    def __init__(self, pool):
        self.pool = pool
        self.folder = tempfile.mkdtemp(prefix="sl-relay-", dir="/tmp")
        self.path = os.path.join(self.folder, "server.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.listener.settimeout(harness.PATIENCE)
        self.opened = [self.listener]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for opened in self.opened:
            opened.close()
        shutil.rmtree(self.folder)

    def environment(self):
        return {**self.pool.environment(), "SUBLET_SERVER": self.path}

    def pass_on_until(self, operation):
        """Passes on what both say; returns after a request for this operation, and passes on
        nothing from then on: the command waits in vain for its reply."""
        command = self.listener.accept()[0]
        server = socket.socket(socket.AF_UNIX)
        self.opened += [command, server]
        server.connect(self.pool.socket)
        other = {command: server, server: command}
        asked = b""
        while b"\0" + operation + b"\0" not in asked:
            ready = select.select([command, server], [], [], harness.PATIENCE)[0]
            said = {one: one.recv(1 << 16) for one in ready}
            if not said or b"" in said.values():
                raise harness.Timeout("no %r was asked for: %r" % (operation, asked))
            for one, what in said.items():
                other[one].sendall(what)
            asked += said.get(command, b"")


class Alone(unittest.TestCase):
    """Tests that need no server."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sl-cli-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.folder, "TERM": "xterm",
                            "SUBLET_SERVER": os.path.join(self.folder, "none.sock")}

    def run_it(self, *args, **extra):
        done = subprocess.run([SUBLET] + list(args), cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace",
                              timeout=harness.PATIENCE,
                              env={**self.environment, **extra})
        return done.returncode, done.stdout, done.stderr

    def write(self, name, text, mode="w"):
        path = os.path.join(self.folder, name)
        with open(path, mode) as f:
            f.write(text)
        return path

    def test_help_everywhere(self):
        for words in [[]] + [[c] for c in COMMANDS]:
            status, out, err = self.run_it(*words, "--help")
            self.assertEqual((status, err), (0, ""))
            self.assertIn("Usage: sublet", out)
        self.assertRegex(self.run_it("--version")[1], r"^sublet \d+\.\d+\.\d+\n$")

    def test_help_tells_no_default_but_in_words(self):
        for words in [[]] + [[c] for c in COMMANDS]:
            self.assertNotRegex(self.run_it(*words, "--help")[1], r"(?m)^  -\S+ \S+=[-\d]")

    def test_usage_errors(self):
        for words in (["bogus"], [], ["ls", "--lmit", "3"], ["show"], ["show", "x"], ["wait"],
                      ["rm", "3", "--batch", "4"], ["ls", "--state", "runing"], ["rm", "5-3"],
                      ["submit"], ["submit", "x.toml", "--", "true"], ["submit", "prog"],
                      ["submit", "--into", "x", "--", "true"], ["ls", "--limit", "-1"], ["ls", "--sort", "siz"],
                      ["submit", "--memory", "lots", "--", "true"], ["wait", "3", "--timeout", "x"],
                      ["submit", "--env", "SUBLET_NOT_SET_HERE", "--", "true"],
                      ["submit", "--output", "../x", "--", "true"],
                      ["submit", "--name", "n", "x.toml"], ["report", "--by", "moon"],
                      ["report", "planets"], ["report", "--since", "yesterday"],
                      ["report", "--since", "2026-11-20", "--until", "2026-11-19"],
                      ["logs", "3", "--stderr", "--both"], ["logs", "3", "--tail", "-1"],
                      ["logs", "3", "--attempt", "-1"], ["logs", "x"], ["completion", "tcsh"],
                      ["fetch"], ["fetch", "--follow", "3"], ["fetch", "--follow", "--batch", "3"]):
            status, out, err = self.run_it(*words)
            self.assertEqual((status, out), (2, ""), words)
            self.assertTrue(err.startswith("sublet"), err)
            status, out, _ = self.run_it("--json", *words)
            self.assertEqual(status, 2, words)
            self.assertTrue(json.loads(out)["error"]["message"], words)

    def test_usage_errors_are_safe_to_show(self):
        for words in (["ls", "\x1b[2J\n\udcff"], ["--\x1b[2J"], ["show", "\x1b[2J"],
                      ["ls", "--limit", "\x1b[2J"], ["\x1b[2J"], ["logs", "3", "--tail", "\x1b"],
                      ["submit", "\x1b[2J.toml"], ["ls", "--server", "/\x1b[2J/x"]):
            status, out, err = self.run_it(*words)
            self.assertIn(status, (2, 3, 8), words)
            self.assertEqual(out, "", words)
            self.assertNotIn("\x1b", err)
            self.assertIn("\\x1b", err)

    def test_socket_path_too_long(self):
        status, out, _ = self.run_it("--server", "/tmp/" + 200 * "x", "ls", "--json")
        self.assertEqual(status, 3)
        self.assertIn("205 bytes", json.loads(out)["error"]["message"])

    def test_server_down(self):
        stale = os.path.join(self.folder, "stale.sock")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(stale)
        for path in (self.environment["SUBLET_SERVER"], stale):
            for words in (["ls"], ["machines"], ["wait", "3"], ["submit", "--", "true"]):
                with harness.Pace() as pace:
                    status, out, err = self.run_it("--server", path, *words)
                self.assertEqual((status, out), (8, ""), words)
                self.assertEqual(len(err.splitlines()), 1, err)
                self.assertIn(path, err)
                self.assertIn("start sublet-server", err)
                pace.check(self, 2, "the report of a server that is down")
        error = json.loads(self.run_it("ls", "--json")[1])["error"]
        self.assertEqual(error["code"], "server.down")

    def test_where_the_server_is(self):
        del self.environment["SUBLET_SERVER"]
        os.makedirs(os.path.join(self.folder, ".config/sublet"))
        config = self.write(".config/sublet/config.toml", 'server = "/configured/x.sock"\n')
        self.assertIn("no server at /configured/x.sock (from %s): " % config, self.run_it("ls")[2])
        self.assertIn("no server at /env.sock (from $SUBLET_SERVER): ",
                      self.run_it("ls", SUBLET_SERVER="/env.sock")[2])
        self.assertIn("no server at /opt.sock (from --server): ",
                      self.run_it("ls", "--server", "/opt.sock")[2])
        os.remove(config)
        default = "/run/sublet/server.sock"
        if not os.path.exists(default):  # else this machine has a server
            self.assertIn("no server at %s (the default): " % default, self.run_it("ls")[2])
        config = self.write(".config/sublet/config.toml", "")
        self.write(".config/sublet/config.toml", "servr = 1\n")
        status, _, err = self.run_it("ls")
        self.assertEqual(status, 3)
        self.assertIn(config + ":1:1", err)

    def test_hostile_batch_files(self):
        for text, place in (('[[job]]\nprogramm = "x"\n', ":2:1:"),
                            ("[[job]]\nprogram = 5\n", ":2:11:"),
                            ('[[job]]\nprogram = "x"\noutputs = ["../../etc/passwd"]\n', ":3:12:"),
                            ('[[job]]\nprogram = "x"\noutputs = ["a", "a"]\n', ":3:17:"),
                            ("[[job", ":1:"), ("\0\0\0", ":1:"),
                            ("a = " + "[" * 100000, ":1:"),
                            ('[[job]]\nprogram = "x"\ncount = 1000001\n', ":3:9:")):
            self.write("b.toml", text)
            status, out, err = self.run_it("submit", "b.toml")
            self.assertEqual((status, out), (3, ""), text[:50])
            self.assertIn("b.toml" + place, err)
            self.assertEqual(len(err.splitlines()), 1)
        self.write("b.toml", "#" * (16 * 1024 * 1024 + 1))
        self.assertEqual(self.run_it("submit", "b.toml")[0], 7)
        self.assertEqual(self.run_it("submit", "none.toml")[0], 3)
        self.write("b.toml", '[[job]]\nprogram = "x"\ninputs = ["a", "none"]\n')
        self.write("a", "")
        status, _, err = self.run_it("submit", "b.toml")
        self.assertEqual(status, 3)
        self.assertIn("b.toml:3:16: the input file none does not exist", err)

    def test_dry_run_needs_no_server(self):
        self.write("prog", "#!/bin/sh\n")
        self.write("b.toml", '[defaults]\nprogram = "./prog"\n[[job]]\n[[job]]\ncount = 9\n')
        status, out, _ = self.run_it("submit", "--dry-run", "b.toml")
        self.assertEqual(status, 0)
        self.assertIn("would submit 10 jobs and send 1 file", out)
        plan = json.loads(self.run_it("submit", "--dry-run", "--json", "b.toml")[1])
        self.assertEqual((plan["job_count"], plan["files"]), (10, 1))
        self.assertEqual(plan["jobs"][0]["description"]["program"], "./prog")
        plan = json.loads(self.run_it("submit", "--dry-run", "--json", "--env", "A=1", "--env",
                                      "HOME", "--", "sh", "--json", "--", "x")[1])
        job = plan["jobs"][0]["description"]
        self.assertEqual(job["arguments"], ["--json", "--", "x"])
        self.assertEqual(job["environment"], ["A=1", "HOME=" + self.folder])

    def test_dry_run_of_a_sweep(self):
        self.write("b.toml", '[defaults]\nprogram = "x"\narguments = ["{rate}", "{seed}"]\n'
                             '[defaults.parameters]\nrate = [0.1, 0.5]\n'
                             'seed = { from = 1, to = 100 }\n[[job]]\nname = "s"\n')
        status, out, _ = self.run_it("submit", "--dry-run", "b.toml")
        self.assertEqual(status, 0)
        self.assertIn("s: 200 jobs, from rate=0.1 seed=1 to rate=0.5 seed=100\n", out)
        plan = json.loads(self.run_it("submit", "--dry-run", "--json", "b.toml")[1])
        self.assertEqual(plan["jobs"][0]["sweep"]["last"], {"rate": "0.5", "seed": "100"})

    def test_question_marks_of_outputs(self):
        words = {"a?": ("a", False), "a??": ("a?", False), "a\\?": ("a\\?", True),
                 "a\\\\?": ("a\\\\", False), "*.png": ("*.png", True), "r/?": ("r/", False)}
        for word, expected in words.items():
            plan = json.loads(self.run_it("submit", "--dry-run", "--json", "--output", word, "--",
                                          "x")[1])
            output = plan["jobs"][0]["description"]["outputs"][0]
            self.assertEqual((output["name"], output["required"]), expected, word)

    def limited(self, *args, stdin):
        """Runs it with a gigabyte of address space (the address sanitizer needs more);
        returns status and stderr."""
        most = resource.RLIM_INFINITY if "asan" in harness.BIN else 1 << 30
        done = subprocess.run([SUBLET] + list(args), cwd=self.folder, stdin=stdin, text=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              timeout=2 * harness.PATIENCE, env=self.environment,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                                    (most, most)))
        return done.returncode, done.stderr

    def test_a_million_lines(self):
        """Memory is bounded, and too many lines give an error message."""
        for lines, expected in ((1_000_000, (0, "")), (1_000_001, (7, "1,000,000 lines"))):
            self.write("lines", "".join("%d\n" % i for i in range(lines)))
            with open(os.path.join(self.folder, "lines")) as stdin:
                status, err = self.limited("submit", "--dry-run", "--each", "--", "true",
                                           stdin=stdin)
            self.assertEqual(status, expected[0], err)
            self.assertIn(expected[1], err)
        self.write("b.toml", '[[job]]\nprogram = "x"\narguments = [\n' + '"a",\n' * 1_000_000 + "]\n")
        status, err = self.limited("submit", "--dry-run", "b.toml", stdin=subprocess.DEVNULL)
        self.assertEqual(status, 3, err)
        self.assertIn("b.toml:4100:1: more than 4096 arguments", err)
        self.write("b.toml", '[[job]]\nprogram = "x"\n' * 500_000)
        status, err = self.limited("submit", "--dry-run", "b.toml", stdin=subprocess.DEVNULL)
        self.assertEqual(err.count("\n"), 1 if status else 0, err)

    def test_arrays_of_none_and_too_many(self):
        for count in ("0", "-1", "1000001", "1000000000000", "1e12"):
            self.write("b.toml", '[[job]]\nprogram = "x"\ncount = %s\n' % count)
            status, _, err = self.run_it("submit", "--dry-run", "b.toml")
            self.assertEqual(status, 3)
            self.assertIn("b.toml:3:9: count must be", err)

    def test_closed_pipe_and_full_disk(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([SUBLET, "--help"], stdout=writer, stderr=subprocess.PIPE,
                              timeout=harness.PATIENCE)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (141, b""))
        with open("/dev/full", "w") as full:
            done = subprocess.run([SUBLET, "--help"], stdout=full, stderr=subprocess.PIPE,
                                  timeout=harness.PATIENCE, text=True)
        self.assertEqual(done.returncode, 7)
        self.assertIn("cannot write the output", done.stderr)


class WithPool(unittest.TestCase):
    """With a private server and one workstation with two slots."""

    @classmethod
    def setUpClass(cls):
        cls.pool = harness.Pool().start_server()
        cls.addClassCleanup(cls.pool.close)
        cls.pool.client("moe", slots=2).start()
        cls.pool.wait_machines(1)

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=self.pool.folder)

    def write(self, name, text, mode=0o755):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def run_it(self, *args):
        return self.pool.run(*args, cwd=self.folder)

    def listing(self, where="."):
        found = []
        for folder, _, names in os.walk(os.path.join(self.folder, where)):
            found += [os.path.relpath(os.path.join(folder, n), self.folder) for n in names]
        return sorted(found)

    def read(self, name):
        with open(os.path.join(self.folder, name)) as f:
            return f.read()

    def state(self, job):
        return self.pool.job(job)["state"]

    def wait_running(self, job):
        harness.wait_for(lambda: self.state(job) == "running", "job %d to run" % job)

    def test_one_job_is_printed(self):
        self.write("prog", "#!/bin/sh\necho out $1 $A\necho err >&2\ncat data > made\n")
        self.write("x", "contents")
        status, out, err = self.run_it("submit", "--wait", "--into", "to", "--input", "x=data",
                                       "--output", "made", "--output", "maybe?", "--env", "A=b",
                                       "--", "./prog", "it's")
        self.assertEqual((status, out), (0, "out it's b\n"), err)
        self.assertIn("err\n", err)
        self.assertEqual(self.listing("to"), ["to/made"])
        self.assertEqual(self.read("to/made"), "contents")

    def test_failed_job(self):
        status, out, err = self.run_it("submit", "--wait", "--", "sh", "-c", "echo hi; exit 3")
        self.assertEqual((status, out), (1, "hi\n"))
        self.assertIn("failed", err)
        job = self.pool.submit("--", "no-such-program-anywhere")[0]
        status, out, err = self.run_it("wait", job)
        self.assertEqual(status, 1)
        self.assertIn("job %d failed" % job, err)
        self.assertIn("1 failed", out)

    def test_batch_with_array(self):
        self.write("prog", "#!/bin/sh\necho $1 > r-$1\necho said $1\n")
        self.write("b.toml", '[[job]]\nname = "arr"\nprogram = "./prog"\n'
                             'arguments = ["{index}"]\noutputs = ["r-{index}"]\ncount = 3\n')
        status, out, err = self.run_it("submit", "--wait", "--into", "r", "b.toml")
        self.assertEqual(status, 0, err)
        self.assertIn("3 jobs: 3 done", out)
        self.assertIn("fetched 6 files of 3 jobs", out)
        self.assertEqual([self.read("r/r-%d" % i) for i in range(3)], ["0\n", "1\n", "2\n"])
        self.assertEqual(len([n for n in self.listing("r") if n.endswith(".out")]), 3)

    def test_sweep(self):
        """Lists, a range and a table: each combination runs once, with results here."""
        self.write("prog", "#!/bin/sh\necho $X-$1-$2 > r-$1-$2\n")
        self.write("points.csv", 'x,y\n1,"a b"\n2,c\n')
        self.write("b.toml", '[[job]]\nprogram = "./prog"\narguments = ["{index}", "{n}"]\n'
                             'environment = { X = "{x}{y}" }\noutputs = ["r-{index}-{n}"]\n'
                             'table = "points.csv"\n'
                             'parameters = { n = { from = 10, to = 30, step = 10 } }\n')
        status, out, err = self.run_it("submit", "--wait", "--into", "r", "b.toml")
        self.assertEqual(status, 0, err + out)
        self.assertIn("6 jobs: 6 done", out)
        self.assertEqual(sorted(self.read(name) for name in self.listing("r")),
                         ["1a b-0-10\n", "1a b-1-20\n", "1a b-2-30\n",
                          "2c-3-10\n", "2c-4-20\n", "2c-5-30\n"])

    def test_inputs_of_a_sweep(self):
        for name in "ab":
            self.write("in-" + name, name * 3)
        self.write("b.toml", '[[job]]\nprogram = "cat"\narguments = ["data"]\n'
                             'inputs = [{ file = "in-{n}", name = "data" }]\n'
                             'parameters = { n = ["a", "b"] }\n')
        status, out, err = self.run_it("submit", "--wait", "--into", "r", "b.toml")
        self.assertEqual(status, 0, err + out)
        self.assertEqual(sorted(self.read(name) for name in self.listing("r")), ["aaa", "bbb"])

    def test_each_line_a_job(self):
        lines = os.path.join(self.folder, "lines")
        with open(lines, "w") as f:
            f.write("one\n\ntwo words\n3\n")
        with open(lines) as stdin:
            status, out, err = self.pool.run(
                "submit", "--wait", "--into", "r", "--output", "out-{index}", "--each", "--",
                "sh", "-c", 'echo "$0" > out-$1', "{}", "{index}", cwd=self.folder, stdin=stdin)
        self.assertEqual(status, 0, err)
        self.assertEqual([self.read("r/out-%d" % i) for i in range(3)],
                         ["one\n", "two words\n", "3\n"])
        status, _, err = self.run_it("submit", "--each", "--", "echo")
        self.assertEqual(status, 3)
        self.assertIn("standard input has no lines", err)

    def test_a_million_jobs_are_one_record(self):
        """In a separate pool: these jobs would fill every list of the other tests."""
        self.write("b.toml", '[[job]]\nprogram = "true"\ncount = 1000000\n')
        with harness.Pool() as pool:
            pool.start_server()
            jobs = pool.sublet("submit", "b.toml", cwd=self.folder)
            first, count = jobs["jobs"]["first"], jobs["jobs"]["count"]
            self.assertEqual(count, 1000000)
            ids = "%d-%d" % (first, first + count - 1)
            lines = pool.run("ls")[1].splitlines()
            self.assertEqual(len(lines), 2, lines)
            self.assertEqual(lines[1].split()[:3], [ids, "1000000", "true"])
            self.assertEqual(len(pool.run("ls", "--each-job", "--limit", 7)[1].splitlines()), 8)
            self.assertEqual(len(pool.sublet("ls", "--limit", 7)["jobs"]), 7)
            self.assertIn("1000000 jobs: 1000000 waiting", pool.run("show", ids)[1])
            shown = pool.sublet("show", "--batch", jobs["batch"])
            self.assertEqual([run["count"] for run in shown["jobs"]], [count])
            self.assertEqual(shown["counts"]["waiting"], count)
            self.assertRegex(pool.run("why", ids)[1], "^jobs %s true: waiting for [0-9]+ s; "
                             "job %d: no machine is in the pool: start sublet-client on a "
                             "workstation\n$" % (ids, first))
            self.assertEqual(pool.sublet("hold", "--batch", jobs["batch"])["changed"], count)
            last = pool.job(first + count - 1)
            self.assertEqual((last["state"], last["index"]), ("held", count - 1))
            self.assertEqual(pool.sublet("rm", "--batch", jobs["batch"])["changed"], count)
            self.assertEqual(pool.job(first + 500000)["state"], "removed")

    def test_named_by_state(self):
        """In a separate pool: --mine applies to every job of the user."""
        with harness.Pool() as pool:
            pool.start_server()
            for words in (["rm"], ["hold"], ["rm", "--state", "waiting"], ["rm", "--mine", "17"],
                          ["release", "--mine", "--batch", "1"], ["rm", "--mine", "--state", "x"]):
                status, out, err = pool.run(*words)
                self.assertEqual((status, out), (2, ""), (words, err))
            self.assertIn("--mine", pool.run("rm")[2])
            self.write("b.toml", '[[job]]\nprogram = "true"\ncount = 100\n')
            jobs = pool.submit("b.toml", cwd=self.folder)
            first = jobs[0]
            self.assertEqual(pool.sublet("hold", "%d-%d" % (first + 10, first + 19))["changed"], 10)
            self.assertIn("held by ", pool.job(first + 10)["reason"])
            self.assertEqual(pool.run("rm", first, "--state", "held")[:2], (0, "removed 0 jobs\n"))
            self.assertEqual(pool.sublet("release", "%d-%d" % (first, first + 11), "--state",
                                         "held")["changed"], 2)
            self.assertEqual(pool.sublet("rm", "--mine", "--state", "held")["changed"], 8)
            self.assertEqual(pool.sublet("rm", "--mine"), {"changed": 92, "unchanged": 0})
            self.assertRegex(pool.run("why", first)[1],
                             "^job %d true: removed [0-9]+ s ago: removed by " % first)

    def test_stopped_is_no_failure(self):
        self.write("b.toml", '[batch]\nstop_when = { done = 1 }\n[[job]]\nprogram = "true"\n'
                             '[[job]]\nprogram = "sleep"\narguments = ["600"]\n')
        status, out, err = self.run_it("submit", "--wait", "b.toml")
        self.assertEqual((status, out.splitlines()[0]), (0, "2 jobs: 1 done, 1 removed"), err)
        self.assertRegex(err, "1 job removed; job [0-9]+: the batch has stopped: job [0-9]+ is done")
        batch = self.pool.sublet("ls", "--all")["jobs"][0]["batch"]
        waited = self.pool.sublet("wait", "--batch", batch)
        self.assertEqual((waited["stopped"], waited["counts"]["removed"]), (1, 1))
        # A job that a user removes is reported as before.
        job = self.pool.submit("--", "sleep", "600")[0]
        self.run_it("rm", job)
        self.assertEqual(self.run_it("wait", job)[0], 1)
        # A failed job is still reported as failed.
        self.write("b.toml", '[batch]\nstop_when = { failed = 1 }\n[[job]]\nprogram = "false"\n'
                             '[[job]]\nprogram = "sleep"\narguments = ["600"]\n')
        status, out, err = self.run_it("submit", "--wait", "b.toml")
        self.assertEqual((status, out.splitlines()[0]), (1, "2 jobs: 1 failed, 1 removed"), err)

    def test_same_names_are_not_mixed(self):
        self.write("b.toml", '[defaults]\nprogram = "sh"\narguments = ["-c", "echo x > same"]\n'
                             'outputs = ["same"]\n[[job]]\n[[job]]\n')
        jobs = self.pool.submit("b.toml", cwd=self.folder)
        batch = self.pool.job(jobs[0])["batch"]
        self.assertEqual(self.run_it("wait", "--batch", batch)[0], 0)
        status, _, err = self.run_it("fetch", "--batch", batch)
        self.assertEqual(status, 6)
        self.assertIn("--by-job", err)
        self.assertEqual(self.listing(), ["b.toml"])
        self.assertEqual(self.run_it("fetch", "--by-job", "%d-%d" % (jobs[0], jobs[1]))[0], 0)
        self.assertEqual(self.listing(), sorted(["b.toml"] + ["%d/same" % j for j in jobs]))

    def test_same_names_are_found_before_anything_runs(self):
        self.write("b.toml", '[[job]]\nprogram = "true"\ncount = 2\noutputs = ["same"]\n')
        before = self.pool.sublet("ls", "--all")["jobs"]
        status, out, err = self.run_it("submit", "--dry-run", "b.toml")
        self.assertEqual(status, 0, err)
        self.assertIn("several jobs leave an output `same`", err)
        for words in (["--wait"], ["--wait", "--into", "r"]):
            status, out, err = self.run_it("submit", *words, "b.toml")
            self.assertEqual((status, out), (6, ""), err)
            self.assertIn("sublet: b.toml:4:12: several jobs leave an output `same`; ", err)
            self.assertIn("use --by-job; nothing was submitted", err)
        # Folders, and what lies in another job's.
        for outputs, said in (
                (('d/', 'd/'), "sublet: b.toml:6:12: several jobs leave an output `d/`; "),
                (('d', 'd/x'), "sublet: b.toml:6:12: the output `d/x` of one job lies in the output "
                               "`d` of another; "),
                (('d/x', 'd/'), "sublet: b.toml:6:12: the output `d/x` of one job lies in the "
                                "output `d/` of another; ")):
            self.write("b.toml", "".join('[[job]]\nprogram = "true"\noutputs = ["%s"]\n' % one
                                         for one in outputs))
            status, out, err = self.run_it("submit", "--wait", "b.toml")
            self.assertEqual((status, out), (6, ""), err)
            self.assertTrue(err.startswith(said), err)
            self.assertIn(said[:-2], self.run_it("submit", "--dry-run", "b.toml")[2])
        status, out, err = self.run_it("submit", "--wait", "--count", "3", "--output", "d/", "--",
                                       "true")
        self.assertEqual((status, out), (6, ""), err)
        self.assertTrue(err.startswith("sublet: several jobs leave an output `d/`; "), err)
        self.assertEqual(self.pool.sublet("ls", "--all")["jobs"], before)

    def test_an_unusable_folder_is_found_before_anything_runs(self):
        before = self.pool.sublet("ls", "--all")["jobs"]
        self.write("file", "")
        for folder in ("file", "file/below", "/proc/none"):
            status, out, err = self.run_it("submit", "--wait", "--into", folder, "--", "true")
            self.assertEqual((status, out), (3, ""), err)
            self.assertIn(folder, err)
            planned = self.run_it("submit", "--dry-run", "--wait", "--into", folder, "--", "true")
            if folder != "/proc/none":  # only an attempt to make it shows that
                self.assertEqual(planned[0], 3, planned)
        self.assertEqual(self.pool.sublet("ls", "--all")["jobs"], before)
        for folder in ("new", "new/below"):
            status, _, err = self.run_it("submit", "--dry-run", "--wait", "--into", folder, "--",
                                         "true")
            self.assertEqual((status, os.path.exists(self.folder + "/new")), (0, False), err)
        for words in (["submit", "--wait", "--into", "", "--", "true"], ["wait", "1", "--into", ""],
                      ["fetch", "1", "--into", ""], ["submit", "--into", "", "--", "true"]):
            status, out, err = self.run_it(*words)
            self.assertEqual((status, out), (2, ""), err)
            self.assertIn("--into: the value is empty", err)

    @unittest.skipUnless(os.geteuid() == 0, "becomes another user")
    def test_a_folder_of_somebody_else_is_found_before_anything_runs(self):
        before = self.pool.sublet("ls", "--all")["jobs"]
        program = shutil.copy(SUBLET, os.path.join(self.folder, "sublet"))
        os.chmod(self.folder, 0o755)
        self.write("b.toml", '[[job]]\nprogram = "true"\n')
        os.chmod(self.folder + "/b.toml", 0o600)
        denied = "Permission denied (check its owner and permissions)"
        here = "sublet: cannot write to the current folder: %s; nothing was submitted\n" % denied
        for words, said in (
                (["--wait", "--output", "y", "--", "true"], here),
                (["--wait", "--count", "2", "--", "true"], here),
                (["--wait", "--into", "x", "--", "true"],
                 "sublet: cannot make the folder x: %s; nothing was submitted\n" % denied),
                (["--dry-run", "--wait", "--output", "y?", "--", "true"], here),
                (["--dry-run", "--wait", "--into", "x", "--", "true"], here),
                (["b.toml"], "sublet: cannot open b.toml: %s\n" % denied),
                # Nothing is to be stored.
                (["--dry-run", "--wait", "--", "true"], ""),
                (["--dry-run", "--output", "y", "--", "true"], "")):
            done = subprocess.run([program, "submit"] + words, user=65534, group=65534,
                                  extra_groups=[], cwd=self.folder, env=self.pool.environment(),
                                  text=True, stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=harness.PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (3 if said else 0, said), words)
        self.assertEqual(self.pool.sublet("ls", "--all")["jobs"], before)

    def test_big_files_both_ways(self):
        with open(os.path.join(self.folder, "big"), "wb") as f:
            f.write(os.urandom(5_000_001))
        status, _, err = self.run_it("submit", "--wait", "--input", "big", "--output", "back",
                                     "--", "cp", "big", "back")
        self.assertEqual(status, 0, err)
        with open(self.folder + "/big", "rb") as a, open(self.folder + "/back", "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_hold_release_remove(self):
        jobs = self.pool.submit("--", "sleep", "600") + self.pool.submit("--", "sleep", "600")
        ids = "%d,%d" % tuple(jobs)
        self.assertEqual(self.pool.sublet("hold", ids), {"changed": 2, "unchanged": 0})
        self.assertEqual(self.state(jobs[0]), "held")
        self.assertEqual(self.run_it("fetch", jobs[0])[0], 6)
        self.assertEqual(self.run_it("release", jobs[0])[:2], (0, "released 1 job\n"))
        status, out, _ = self.run_it("rm", ids)
        self.assertEqual((status, out), (0, "removed 2 jobs\n"))
        self.assertEqual(self.run_it("wait", ids)[0], 1)
        self.assertEqual(self.pool.sublet("rm", ids), {"changed": 0, "unchanged": 2})

    def test_jobs_of_a_user(self):
        jobs = self.pool.submit("--name", "one", "--", "sleep", "600")
        me = self.pool.job(jobs[0])["user"]
        self.assertEqual(self.pool.sublet("rm", "--user", "nobody-else")["changed"], 0)
        self.assertEqual(self.pool.sublet("hold", "--user", me, "--state", "done"),
                         {"changed": 0, "unchanged": 0})
        self.assertGreaterEqual(self.pool.sublet("rm", "--user", me)["changed"], 1)
        self.assertEqual(self.state(jobs[0]), "removed")
        for words in (["--mine"], [str(jobs[0])], ["--batch", "1"]):
            status, _, err = self.run_it("rm", "--user", me, *words)
            self.assertEqual(status, 2)
            self.assertIn("give only one of", err)

    def test_named_machines(self):
        self.assertEqual([m["name"] for m in self.pool.sublet("machines", "moe")["machines"]],
                         ["moe"])
        self.assertEqual([m["name"] for m in self.pool.sublet("machines", "moe", "moe")["machines"]],
                         ["moe"])
        for act in ("drain", "resume"):
            status, out, err = self.run_it("admin", act, "moe", "moe")
            self.assertEqual((status, out.count("moe")), (0, 1), (out, err))
        status, out, err = self.run_it("machines", "mo")
        self.assertEqual((status, out), (4, ""))
        self.assertIn("there is no machine 'mo'; did you mean 'moe'?", err)

    def test_a_refusal_is_all_that_is_said(self):
        for words in (["shares", "", "3"], ["quota", "", "1GiB"]):
            status, out, err = self.run_it("admin", *words)
            self.assertEqual((status, out, err),
                             (3, "", "sublet: a user's name has 1 to 255 octets; give the name as in "
                                     "`sublet report`\n"))
        status, out, err = self.run_it("admin", "shares", "newcomer", "3")
        self.assertEqual((status, err), (0, "nobody called 'newcomer' has used the pool lately\n"))

    def test_unknown_jobs(self):
        for words in (["show", "999999"], ["rm", "999999"], ["wait", "999999"], ["fetch", "999999"],
                      ["hold", "999998-999999"], ["wait", "--batch", "999999"],
                      ["ls", "--batch", "999999"], ["show", "--batch", "999999"],
                      ["rm", "--batch", "999999"], ["fetch", "--batch", "999999"]):
            status, out, err = self.run_it(*words)
            self.assertEqual((status, out), (4, ""), (words, err))
            self.assertIn("there is no", err)
            error = json.loads(self.run_it(*words, "--json")[1])["error"]
            self.assertTrue(error["code"].endswith(".unknown"))
        job = self.pool.submit("--", "true")[0]
        status, _, err = self.run_it("wait", "%d,999999" % job)
        self.assertEqual(status, 4)
        self.assertIn("there is no job 999999", err)

    def test_lists_are_chosen_and_sorted(self):
        """In a separate pool, without machines: the jobs do not change."""
        with harness.Pool() as pool:
            pool.start_server()
            first = pool.submit("--name", "b-1", "--", "true")[0]
            self.write("two.toml", '[[job]]\nname = "a"\nprogram = "true"\n'
                                   '[[job]]\nname = "b-2"\nprogram = "true"\n')
            pool.sublet("submit", "two.toml", cwd=self.folder)
            pool.sublet("rm", first)

            def names(*words):
                return [job["name"] for job in pool.sublet("ls", *words)["jobs"]]
            self.assertEqual(names(), ["b-2", "a"])
            self.assertEqual(names("--all"), ["b-2", "a", "b-1"])
            self.assertEqual(names("--all", "--reverse"), ["b-1", "a", "b-2"])
            self.assertEqual(names("--since", "1 h"), ["b-2", "a", "b-1"])
            self.assertEqual(names("--since", "2999-01-01"), [])
            self.assertEqual(names("--all", "--name", "b-*"), ["b-2", "b-1"])
            self.assertEqual(names("--all", "--sort", "name"), ["a", "b-1", "b-2"])
            self.assertEqual(names("--all", "--sort", "name", "--reverse"), ["b-2", "b-1", "a"])
            self.assertEqual(names("--all", "--sort", "name", "--limit", 2), ["a", "b-1"])
            self.assertEqual(names("--all", "--sort", "changed")[0], "b-1")
            self.write("many.toml", '[[job]]\nprogram = "true"\ncount = 2500\n')
            pool.sublet("submit", "many.toml", cwd=self.folder)
            self.assertEqual(len(names()), 1000)
            self.assertEqual(len(names("--limit", 0)), 2502)
            listed = json.loads(pool.run("ls", "--limit", "1500", "--json")[1])
            self.assertEqual((len(listed["jobs"]), listed["more"]), (1500, True))
            self.assertEqual(names("--limit", 0, "--name", "b-?"), ["b-2"])

    def test_lists_fit_and_are_safe(self):
        job = self.pool.submit("--name", "evil\x1b[2J\nname", "--", "sleep", "600")[0]
        self.addCleanup(self.run_it, "rm", job)
        status, out, _ = self.run_it("ls", "--all")
        self.assertEqual(status, 0)
        self.assertNotIn("\x1b", out)
        self.assertIn("\\x1b[2J", out)
        leader, follower = pty.openpty()
        done = subprocess.Popen([SUBLET, "ls", "--all"], stdout=follower, stdin=subprocess.DEVNULL,
                                env={**self.pool.environment(), "COLUMNS": "40", "TERM": "xterm",
                                     "NO_COLOR": "1"})
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 65536):
                shown += chunk
        except OSError:
            pass  # the other end has been closed
        os.close(leader)
        self.assertEqual(done.wait(60), 0)
        self.assertNotIn(b"\x1b", shown)
        self.assertLessEqual(max(len(l) for l in shown.decode().split("\r\n")), 40)

    def test_names_of_any_bytes(self):
        """Inputs, arguments, a job's name: they arrive unchanged and are shown safely."""
        strange = ["new\nline", os.fsdecode(b"no \xff utf-8"), "\x1b[2J"]
        inputs = []
        for name in strange:
            self.write(name, "<%s>" % len(name))
            inputs += ["--input", name]
        status, out, err = self.run_it("submit", "--wait", "--into", "to", "--name", strange[1],
                                       *inputs, "--output", "got", "--output", strange[0] + "2?",
                                       "--env", "X=" + strange[1], "--", "sh", "-c",
                                       'for a in "$@"; do printf %s "$a"; cat "$a"; done > got; '
                                       'printf %s "$X" >> got', "sh", *strange)
        self.assertEqual(status, 0, err)
        with open(os.path.join(self.folder, "to/got"), "rb") as f:
            got = f.read()
        self.assertEqual(os.fsdecode(got),
                         "".join("%s<%d>" % (n, len(n)) for n in strange) + strange[1])
        job = max(j["id"] for j in self.pool.sublet("ls", "--all")["jobs"])
        for words in (["ls", "--all"], ["show", job]):
            status, out, err = self.run_it(*words)
            self.assertEqual((status, err), (0, ""))
            self.assertNotIn("\x1b", out)
        self.assertIn("\\x1b[2J", out)
        self.assertIn("new\\nline", out)
        # Invalid names are shown on one line.
        for word in ("../\n\x1b[2J", "[\n"):
            status, out, err = self.run_it("submit", "--output", word, "--", "true")
            self.assertEqual((status, err.count("\n")), (2, 1), err)
            self.assertNotIn("\x1b", err)

    def test_hostile_words_are_shown_safely(self):
        """Names, arguments, outputs and reasons with any bytes except NUL."""
        hostile = "x\x1b[2J\n\r\udcff\u202ey"
        output = hostile.replace("[", "\\[")
        job = self.pool.submit("--name", hostile, "--env", "A=" + hostile, "--output",
                               output + "?", "--", "no" + hostile, hostile)[0]
        jobs = [job] + self.pool.submit("--name", hostile, "--output", output, "--", "sh", "-c",
                                        'echo "$1" >&2; echo hi > "$1"', "sh", hostile)
        for number in jobs:
            self.run_it("wait", number)
        self.assertEqual([self.state(number) for number in jobs], ["failed", "done"])
        for words in [["ls", "--all"], ["wait", job], ["show", job], ["show", jobs[1]],
                      ["fetch", jobs[1], "--into", "to"]]:
            for number, text in enumerate(self.run_it(*words)[1:]):
                self.assertTrue(all(c == "\n" or c.isprintable() for c in text), (words, text))
        self.assertEqual(self.read("to/" + hostile), "hi\n")
        self.assertEqual(self.pool.job(jobs[1])["outputs"][0]["name"],
                         hostile.replace("\udcff", "\ufffd"))

    def test_every_list_has_json(self):
        job = self.pool.submit("--", "true")[0]
        self.assertEqual(self.run_it("wait", job)[0], 0)
        self.assertIn(job, [j["id"] for j in self.pool.sublet("ls", "--all")["jobs"]])
        detail = self.pool.job(job)
        self.assertEqual((detail["state"], detail["attempt_list"][-1]["ended"]), ("done", "done"))
        self.assertEqual(self.pool.machines()[0]["name"], "moe")
        version = self.run_it("--version")[1].split()[1]
        self.assertEqual(self.pool.machines()[0]["version"], version)
        self.assertIn("usage", self.pool.sublet("report"))
        self.assertIn("server_pid", self.pool.sublet("about"))
        for words in (["show", job], ["machines"], ["report"], ["about"], ["ls", "--state", "done"]):
            self.assertEqual(self.run_it(*words)[0], 0, words)

    def test_interrupted_wait_leaves_the_jobs(self):
        job = self.pool.submit("--", "sleep", "600")[0]
        self.addCleanup(self.run_it, "rm", job)
        self.wait_running(job)
        waiting = subprocess.Popen([SUBLET, "wait", str(job)], stderr=subprocess.PIPE, text=True,
                                   env=self.pool.environment())
        self.assertIn("0 of 1 done", waiting.stderr.readline())
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=harness.PATIENCE)
        self.assertEqual(waiting.returncode, 130)
        self.assertIn("`sublet wait %d`" % job, err)
        self.assertEqual(self.state(job), "running")
        status, _, err = self.run_it("wait", job, "--timeout", "0.2")
        self.assertEqual(status, 124, err)

    def test_wait_says_why_nothing_runs(self):
        waiting = subprocess.Popen([SUBLET, "submit", "--wait", "--into", "my folder", "--even-so",
                                    "--memory", "1000 TB", "--", "true"], stderr=subprocess.PIPE, text=True,
                                   cwd=self.folder, env=self.pool.environment())
        job = int(waiting.stderr.readline().split()[1])
        self.addCleanup(self.run_it, "rm", job)
        with harness.Pace() as pace:
            self.assertIn("0 of 1 done, 1 waiting", waiting.stderr.readline())
            said = waiting.stderr.readline()
        pace.check(self, 2, "the reason")
        self.assertRegex(said, r"^job %d waits: no machine has 909 TiB of memory" % job)
        self.run_it("hold", job)
        self.assertIn("0 of 1 done, 1 held", waiting.stderr.readline())
        said = waiting.stderr.readline()
        self.assertRegex(said, r"^job %d is held by " % job)
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=harness.PATIENCE)
        self.assertIn("`sublet wait --fetch --into 'my folder' %d`" % job, err)

    def test_wait_survives_a_server_restart(self):
        flag = os.path.join(self.pool.folder, "go-on")
        job = self.pool.submit("--", "sh", "-c", "while [ ! -e %s ]; do sleep 0.1; done" % flag)[0]
        self.wait_running(job)
        waiting = subprocess.Popen([SUBLET, "wait", str(job)], stderr=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, env=self.pool.environment())
        self.assertIn("0 of 1 done", waiting.stderr.readline())
        self.pool.kill_server()
        self.pool.wait_serving()
        open(flag, "w").close()
        os.chmod(flag, 0o644)
        out, err = waiting.communicate(timeout=4 * harness.PATIENCE)
        self.assertEqual((waiting.returncode, out), (0, "1 job: 1 done\n"), err)

    def test_interrupted_submission(self):
        # A file so large that the signal arrives during the transfer.
        with open(os.path.join(self.folder, "big"), "wb") as f:
            f.truncate(3 << 30)
        before = self.pool.sublet("ls", "--all")["jobs"]
        for options in [], ["--json"]:
            sending = subprocess.Popen([SUBLET, *options, "submit", "--input", "big", "--", "true"],
                                       cwd=self.folder, text=True, env=self.pool.environment(),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            harness.wait_for(
                lambda: sending.poll() is not None or harness.cpu_ticks(sending.pid) > 20,
                "the command to be busy")
            self.assertIsNone(sending.poll())
            sending.send_signal(signal.SIGINT)
            out, err = sending.communicate(timeout=harness.PATIENCE)
            self.assertEqual(sending.returncode, 130)
            if options:
                self.assertEqual(err, "")
                self.assertEqual(json.loads(out)["error"]["code"], "submit.interrupted")
            else:
                self.assertEqual((out, err), ("", "sublet: interrupted; nothing was submitted\n"))
            self.assertEqual(self.pool.sublet("ls", "--all")["jobs"], before)

    @staticmethod
    def watches_interrupts(process):
        with open("/proc/%d/status" % process.pid) as status:
            blocked = [line.split()[1] for line in status if line.startswith("SigBlk")]
        return process.poll() is not None or int(blocked[0], 16) & (1 << (signal.SIGINT - 1)) != 0

    def test_interrupted_at_any_instant(self):
        """One JSON object is printed, and it is true."""
        with open(os.path.join(self.folder, "data"), "w") as f:
            f.write("data")
        before = self.pool.sublet("ls", "--all")["jobs"]
        for words, operation, code in (
                [["--input", "data"], b"open_batch", "submit.interrupted"],
                [[], b"submit", "submit.uncertain"]):
            with Relay(self.pool) as relay:
                sending = subprocess.Popen([SUBLET, "--json", "submit", *words, "--", "true"],
                                           cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, env=relay.environment())
                relay.pass_on_until(operation)
                sending.send_signal(signal.SIGINT)
                out, err = sending.communicate(timeout=harness.PATIENCE)
            self.assertEqual((sending.returncode, err), (130, ""))
            self.assertEqual(json.loads(out)["error"]["code"], code)
            if code == "submit.interrupted":
                self.assertEqual(self.pool.sublet("ls", "--all")["jobs"], before)
        for _ in range(30):
            sending = subprocess.Popen([SUBLET, "--json", "submit", "--", "true"], text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=self.pool.environment())
            harness.wait_for(lambda: self.watches_interrupts(sending), "the command to begin")
            sending.send_signal(signal.SIGINT)
            out, err = sending.communicate(timeout=harness.PATIENCE)
            # Before the command knows its words, it may end in silence.
            if out or sending.returncode == 0:
                said = json.loads(out)
                self.assertTrue("jobs" in said or said["error"]["code"].startswith("submit."), out)

    def test_interrupted_fetch_leaves_nothing(self):
        job = self.pool.submit("--output", "big", "--", "sh", "-c",
                               "head -c 60000000 /dev/zero > big")[0]
        self.assertEqual(self.run_it("wait", job)[0], 0)
        fetching = subprocess.Popen([SUBLET, "fetch", str(job)], cwd=self.folder,
                                    stdout=subprocess.DEVNULL, env=self.pool.environment())
        harness.wait_for(lambda: self.listing() or fetching.poll() is not None, "a file to appear")
        fetching.send_signal(signal.SIGINT)
        # Nothing of it, or all of it if the transfer was faster than the signal.
        left = self.listing() if fetching.wait(60) == 130 else []
        self.assertIn(left, ([], ["big"]))
        self.assertEqual(self.run_it("fetch", job)[0], 0)
        self.assertEqual(os.path.getsize(self.folder + "/big"), 60_000_000)

    @unittest.skipUnless(os.geteuid() == 0, "becomes another user")
    def test_others_jobs_are_not_yours(self):
        job = self.pool.submit("--", "sleep", "600")[0]
        self.addCleanup(self.run_it, "rm", job)
        # A copy, because other users may not be able to access the checkout.
        program = shutil.copy(SUBLET, os.path.join(self.folder, "sublet"))
        os.chmod(self.folder, 0o755)
        for words in (["rm"], ["hold"], ["show"], ["fetch"]):
            done = subprocess.run([program, words[0], str(job)], user=65534, group=65534, cwd="/",
                                  extra_groups=[], env=self.pool.environment(), text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=harness.PATIENCE)
            if words == ["fetch"]:  # the job has not ended, which any user may learn
                self.assertEqual(done.returncode, 6, done.stderr)
                continue
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("belongs to", done.stderr)
        # Anybody may wait for it, but does not learn why it waits.
        waits = self.pool.submit("--even-so", "--memory", "1000 TB", "--", "true")[0]
        self.addCleanup(self.run_it, "rm", waits)
        done = subprocess.run([program, "wait", str(waits), "--timeout", "3"], user=65534,
                              group=65534, cwd="/", extra_groups=[], text=True,
                              env=self.pool.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=harness.PATIENCE)
        self.assertEqual(done.returncode, 124, done.stderr)

    def test_hostile_targets(self):
        job = self.pool.submit("--output", "d/x", "--", "sh", "-c", "mkdir d; echo x > d/x")[0]
        self.assertEqual(self.run_it("wait", job)[0], 0)
        os.mkdir(self.folder + "/outside")
        os.symlink("outside", self.folder + "/d")
        status, _, err = self.run_it("fetch", job)
        self.assertEqual(status, 3)
        self.assertIn("symbolic link", err)
        self.assertEqual(self.listing("outside"), [])
        self.assertEqual(self.run_it("fetch", job, "--into", "new/folder")[0], 0)
        self.assertEqual(self.read("new/folder/d/x"), "x\n")
        os.makedirs(self.folder + "/taken/d/x")
        status, _, err = self.run_it("fetch", job, "--into", "taken")
        self.assertEqual((status, err), (3, "sublet: taken/d/x is a folder; remove it or fetch into "
                                            "another folder\n"))


if __name__ == "__main__":
    suites = {"alone": Alone, "pool": WithPool}
    if len(sys.argv) < 2 or sys.argv[1] not in suites:
        sys.exit("usage: command_test.py alone|pool [TEST]")
    loader = unittest.TestLoader()
    wanted = suites[sys.argv[1]]
    names = [word for word in sys.argv[2:] if word != "-v"]  # the output is verbose anyway
    tests = (loader.loadTestsFromNames(names, wanted) if names
             else loader.loadTestsFromTestCase(wanted))
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(tests).wasSuccessful() else 1)
