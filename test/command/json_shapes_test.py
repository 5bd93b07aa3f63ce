"""Compares docs/json.md with what the commands print: every printed field is documented,
every documented field is printed, and each has its type."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "checkpoint"))

import harness
from files import FLOAT64, STREAM, checkpoint
from tls_pool import Person, TlsPool, free_port

PAGE = os.path.join(harness.ROOT, "docs", "json.md")
BASIC = {"text": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float)}
TASK = """
[batch]
name = "b"
stop_when = { done = 1, failed = 3, output = "made" }
never_satisfied = "remove"
at_most = 2
[defaults]
program = "sh"
arguments = ["-c", "touch made", "{rate}"]
[[job]]
name = "sweep"
parameters.rate = [0.5, 1.5]
inputs = ["data"]
stdin = "data"
environment = { A = "b" }
outputs = ["made"]
needs = { resources = { gpu = 2 } }
[[job]]
name = "two"
program = { "linux/x86_64" = "./data", "linux/aarch64" = "./data2" }
[[job]]
name = "three"
inputs = [{ job = "sweep[0]", output = "made", name = "here" }]
after = ["sweep"]
after_any = ["two"]
after_start = ["sweep[1]"]
"""


class Page:
    """The tables of docs/json.md by their headings."""

    def __init__(self):
        self.tables = {}  # heading -> {field: type}
        self.commands = set()
        parts = []        # (heading, the heading whose fields it includes)
        names = []
        with open(PAGE) as f:
            for line in f:
                if line.startswith("### "):
                    names = re.findall(r"`([^`]+)`", line) or [line[4:].strip()]
                    if "of several" in line or "Interrupted" in line:
                        names = [line[4:].strip().replace("`", "")]
                    self.commands |= {n.split(" --")[0] for n in names if n[0].islower()}
                field, kind, *_ = [cell.strip() for cell in line.split("|")[1:]] + ["", ""]
                if field.startswith("all of "):
                    parts += [(name, field[7:].strip("`")) for name in names]
                elif field.startswith("`"):
                    for name in names:
                        self.add(name, field.strip("`"), kind)
        for name, part in reversed(parts):  # included headings are further below
            self.tables[name] = {**self.tables.get(name, {}), **self.tables[part]}
        self.used = set()       # headings
        self.present = set()    # (heading, field) of optional fields that were present
        self.problems = []

    def add(self, name, field, kind):
        table = self.tables.setdefault(name, {})
        assert field not in table, (name, field)
        table[field] = kind

    def check(self, kind, value, where):
        if kind.startswith("list of "):
            if not isinstance(value, list):
                return self.problems.append("%s is no list: %r" % (where, value))
            for item in value:
                self.check(kind[8:], item, where + "[]")
        elif kind == "texts by name":
            if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
                self.problems.append("%s is no object of texts: %r" % (where, value))
        elif kind == "integers by name":
            if not isinstance(value, dict) or not all(type(v) is int for v in value.values()):
                self.problems.append("%s is no object of integers: %r" % (where, value))
        elif kind in BASIC:
            if type(value) not in BASIC[kind]:
                self.problems.append("%s is no %s: %r" % (where, kind, value))
        else:
            self.check_table(kind, value, where)

    def check_table(self, heading, value, where):
        self.used.add(heading)
        table = self.tables[heading]
        if not isinstance(value, dict):
            return self.problems.append("%s is no object: %r" % (where, value))
        for name in set(value) - set(table):
            self.problems.append("%s.%s is not documented (%s)" % (where, name, heading))
        for name, kind in table.items():
            if name in value:
                self.present.add((heading, name))
                self.check(kind.rstrip("?"), value[name], "%s.%s" % (where, name))
            elif not kind.endswith("?"):
                self.problems.append("%s.%s is missing (%s)" % (where, name, heading))

    def never_seen(self):
        """Tables that were not checked, and fields that were always missing."""
        return sorted(["table " + t for t in self.tables if t not in self.used] +
                      ["%s.%s" % (t, f) for t in self.tables for f in self.tables[t]
                       if t in self.used and (t, f) not in self.present])


class JsonShapes(unittest.TestCase):
    def setUp(self):
        self.page = Page()
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)

    def test_the_page_names_every_command(self):
        def commands(*words):
            out = self.pool.run(*words, "--help")[1]
            return re.findall(r"^  ([a-z]+) ", out.split("Subcommands:")[1], re.M)
        scripts = {"completion", "metrics"}  # print text of their own, never JSON
        groups = {"admin", "owner", "checkpoint"}
        expected = set(commands()) - groups - scripts
        for group in groups:
            expected |= {group + " " + c for c in commands(group)}
        self.assertEqual({re.sub(" (JOB|of several)$", "", c) for c in self.page.commands},
                         expected)

    def put(self, name, text):
        path = os.path.join(self.pool.folder, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def run_it(self, heading, *words, status=0, run=None, **options):
        """Runs it and checks that it prints one object as described under this heading."""
        words = [str(w) for w in words]
        at = words.index("--") if "--" in words else len(words)
        got, out, err = (run or self.pool.run)(*words[:at], "--json", *words[at:], **options)
        self.assertEqual(got, status, (words, out, err))
        self.assertEqual(out.count("\n"), 1, out)
        value = json.loads(out)
        self.page.check_table(heading, value, " ".join(words))
        return value

    def test_both_ways(self):
        """Each command in the states in which it prints all its fields."""
        self.pool.start_server(["scheduling.accounts=lab=ann bob"])
        self.curly = self.pool.client("curly", extra=["--set", "resources=gpu=2"]).start()
        self.pool.wait_machines(1)
        self.submissions()
        self.jobs()
        self.interruptions()
        self.pool_itself()
        self.following()
        self.administration()
        self.members()
        self.checkpoints()
        self.run_it("rehearse", "rehearse", "--runs", "2", "--",
                    os.path.join(harness.UNIT, "steps"), "first-element", status=1)
        self.assertEqual(self.page.problems, [])
        self.assertEqual(self.page.never_seen(), [])

    def interrupted(self, *words):
        """Ends the command while it waits for a job; returns what it printed."""
        screen, stderr = pty.openpty()  # there it shows its progress, also with --json
        self.addCleanup(os.close, screen)
        waiting = subprocess.Popen([os.path.join(harness.BIN, "sublet"), "--json", *words],
                                   env=dict(self.pool.environment(), TERM="xterm"),
                                   text=True, stderr=stderr,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   cwd=self.pool.folder)
        os.close(stderr)
        try:
            shown = b""
            while b"0 of 1 done" not in shown:
                shown += os.read(screen, 1000)
            waiting.send_signal(signal.SIGINT)
            out, _ = waiting.communicate(timeout=harness.PATIENCE)
        finally:
            waiting.kill()
            waiting.communicate()
        self.assertEqual((waiting.returncode, out.count("\n")), (130, 1), out)
        return json.loads(out)

    def interruptions(self):
        said = self.interrupted("submit", "--wait", "--by-job", "--input", "data", "--",
                                "sleep", "1000")
        self.page.check_table("Interrupted submit --wait", said, "submit --wait")
        job = said["jobs"]["first"]
        self.assertEqual((said["error"]["code"], said["error"]["message"], said["error"]["advice"]),
                         ("wait.interrupted", "the jobs stay in the pool",
                          "to continue: `sublet wait --fetch --by-job --batch %d`" % said["batch"]))
        self.pool.wait_state(job, "running")
        said = self.interrupted("wait", str(job))
        self.page.check_table("Any error", said, "wait")
        self.assertEqual(said["error"]["advice"], "to continue: `sublet wait %d`" % job)
        self.pool.sublet("rm", job)

    def submissions(self):
        self.put("data", "#!/bin/sh\n")
        self.put("data2", "#!/bin/sh\n")
        self.put("b.toml", TASK)
        self.run_it("submit --dry-run", "submit", "--dry-run", "b.toml")
        self.job = self.run_it("submit", "submit", "--", "true")["jobs"]["first"]
        self.made = self.run_it("submit --wait", "submit", "--wait", "--output", "made", "--input",
                                "data", "--", "sh", "-c", "echo 1 | tee made")["jobs"]["first"]
        self.batch = self.run_it("submit", "submit", "b.toml")["batch"]
        self.run_it("wait", "wait", "--batch", self.batch)
        self.run_it("Any error", "show", "999999", status=4)

    def jobs(self):
        page, pool = self.page, self.pool
        self.run_it("wait", "wait", self.job)
        self.run_it("wait", "wait", self.made, "--fetch", "--into", "to")
        self.run_it("fetch", "fetch", self.made, "--into", "to")
        self.run_it("ls", "ls", "--all")
        self.run_it("show JOB", "show", self.made)
        self.run_it("show JOB", "show", self.job)
        for job in pool.sublet("ls", "--batch", self.batch)["jobs"]:
            self.run_it("show JOB", "show", job["id"])
        self.run_it("show of several", "show", "--batch", self.batch)
        self.run_it("show --graph", "show", "--graph", "--batch", self.batch)
        self.run_it("why", "why", self.job)
        self.run_it("logs", "logs", self.made)
        self.run_it("logs", "logs", self.made, "--both")
        self.run_it("show JOB", "show", pool.submit("--even-so", "--leaving", "kill",
                                                      "--network", "none", "--hours", "mon-fri", "--checkpoint", "state",
                                                      "--not-before", "2100-01-01 00:00",
                                                      "--", "true")[0])
        held = pool.submit("--", "true")[0]
        self.run_it("priority", "priority", 5, held)
        for verb in ("hold", "release", "rm"):
            self.run_it(verb, verb, held)
        status, out, err = pool.run("logs", "--follow", "--json", self.made)
        self.assertEqual(status, 0, err)
        begin, *texts, end = [json.loads(line) for line in out.splitlines()]
        page.check_table("LOG_BEGIN", begin, "logs --follow")
        self.assertTrue(texts)
        for text in texts:
            page.check_table("LOG_TEXT", text, "logs --follow")
        page.check_table("LOG_END", end, "logs --follow")

    def pool_itself(self):
        running = self.pool.submit("--", "sleep", "1000")[0]
        self.pool.wait_state(running, "running")
        self.run_it("show JOB", "show", running)
        self.assertTrue(self.run_it("machines", "machines")["machines"][0]["running"])
        self.assertTrue(self.run_it("top", "top")["events"])
        self.run_it("top", "top", "--once")
        self.assertTrue(self.run_it("owner status", "owner", "status", "--state",
                                    self.pool.clients["curly"].state)["attempts"])
        self.pool.sublet("rm", running)
        self.run_it("about", "about")
        for word in ("pause", "reclaim", "lend", "status", "resume"):
            self.run_it("owner " + word, "owner", word, "--state",
                        self.pool.clients["curly"].state)
        self.run_it("owner until", "owner", "until", "23:59", "--state",
                    self.pool.clients["curly"].state)
        self.pool.sublet("owner", "lend", "--state", self.pool.clients["curly"].state)
        for words in (["--idle-when", "hour >= 0"], ["--remove"]):
            self.run_it("owner rules", "owner", "rules", *words, "--state",
                        self.pool.clients["curly"].state)
        self.pool.wait_machines(1)
        evicted = self.pool.submit("--", "sleep", "1000")[0]
        self.pool.wait_state(evicted, "running")
        self.pool.clients["curly"].owner("active")
        self.pool.wait_state(evicted, "waiting")
        self.pool.sublet("rm", evicted)
        self.pool.clients["curly"].owner("away")
        self.assertTrue(self.run_it("report", "report", "evictions")["steps"])
        self.assertTrue(self.run_it("owner history", "owner", "history", "--state",
                                    self.pool.clients["curly"].state)["evictions"])
        for words in ([], ["machines"], ["jobs"], ["--by", "day", "--by", "batch"]):
            self.run_it("report", "report", *words)
        # The server records its own CPU time every few seconds.
        harness.wait_for(lambda: "leverage" in self.pool.sublet("report", "pool")["usage"][0],
                         "the server's CPU time")
        self.run_it("report", "report", "pool")

    def following(self):
        """`fetch --follow`: a line for each job as it ends."""
        env = dict(self.pool.environment(), XDG_STATE_HOME=os.path.join(self.pool.folder, "state"))
        home = os.path.join(self.pool.folder, "home")
        following = subprocess.Popen(
            [os.path.join(harness.BIN, "sublet"), "fetch", "--follow", "--json", "--into", home],
            env=env,
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            following.stderr.readline()
            job = self.pool.submit("--", "echo", "hi")[0]
            line = json.loads(following.stdout.readline())
            self.assertEqual(line["job"], job)
            self.page.check_table("fetch --follow", line, "fetch --follow")
        finally:
            following.terminate()
            following.communicate(timeout=harness.PATIENCE)

    def administration(self):
        for act in ("drain", "evict", "resume"):
            self.run_it("admin " + act, "admin", act, "curly")
        self.run_it("admin policy", "admin", "policy", "fifo")
        self.run_it("admin shares", "admin", "shares", "cid", "2")
        self.pool.sublet("admin", "shares", "@lab", "2")
        self.run_it("report", "report")
        self.run_it("admin quota", "admin", "quota", "ann", "1 GiB")

    def members(self):
        with TlsPool("127.0.0.1:%d" % free_port()) as pool:
            self.assertEqual(pool.init()[0], 0)
            pool.start_server()
            token = self.run_it("admin invite", "admin", "invite", "ann", "--user",
                                run=pool.run)["token"]
            ann = Person(pool, "ann")
            self.run_it("join", "join", token, run=ann.run)
            self.run_it("admin members", "admin", "members", run=pool.run)
            self.run_it("admin revoke", "admin", "revoke", "ann", run=pool.run)

    def checkpoints(self):
        path = os.path.join(self.pool.folder, "checkpoint")
        with open(path, "wb") as f:
            f.write(checkpoint([("x", FLOAT64, [0.1]), ("notes", STREAM, b"hi")]))
        self.run_it("checkpoint show", "checkpoint", "show", path)
        self.run_it("checkpoint show --values", "checkpoint", "show", path, "--values", "x")
        self.run_it("checkpoint verify", "checkpoint", "verify", path, "none", status=1)
        other = os.path.join(self.pool.folder, "other")
        with open(other, "wb") as f:
            f.write(checkpoint([("x", FLOAT64, [0.2]), ("more", STREAM, b"")]))
        self.run_it("checkpoint diff", "checkpoint", "diff", path, other, status=1)
        self.run_it("Any error", "checkpoint", "diff", path, "none", status=2)
        self.run_it("checkpoint load", "checkpoint", "load", "--path", "own", status=1)
        self.run_it("checkpoint save", "checkpoint", "save", "--path", "own", "i=1")
        self.run_it("checkpoint load", "checkpoint", "load", "--path", "own")


class PageChecks(unittest.TestCase):
    """Checks that the test fails for each way in which page and output may differ."""

    def problems(self, change):
        page = Page()
        value = {"id": 1, "batch": 0, "index": 0, "name": "", "user": "", "state": "", "attempts": 0,
                 "machine": "", "reason": "", "submitted_us": 0, "changed_us": 0, "progress_ppm": 0,
                 "cpu_kept_ms": 0, "cpu_lost_ms": 0, "evictions": 0, "priority": 0,
                 "count": 1}
        change(value)
        page.check_table("RUN", value, "x")
        return page.problems

    def test_differences(self):
        self.assertEqual(self.problems(lambda v: None), [])
        self.assertEqual(len(self.problems(lambda v: v.update(new=1))), 1)
        self.assertEqual(len(self.problems(lambda v: v.pop("user"))), 1)
        self.assertEqual(len(self.problems(lambda v: v.update(id="1"))), 1)
        self.assertEqual(len(self.problems(lambda v: v.update(count=True))), 1)
        self.assertEqual(len(self.problems(lambda v: v.update(count=1.5))), 1)
        self.assertEqual(len(Page().never_seen()), len(Page().tables))


if __name__ == "__main__":
    unittest.main()
