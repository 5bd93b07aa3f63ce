"""The command with and without terminals: 20 columns, colours, a dumb terminal, closed
pipes; `top`, and the terminal's state after it."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from on_terminal import OnTerminal, lines, width

SUBLET = os.path.join(harness.BIN, "sublet")
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
LISTS = [["ls"], ["ls", "--all"], ["machines"], ["report"], ["report", "machines"],
         ["report", "pool"], ["report", "jobs"], ["about"], ["top", "--once"], ["admin", "shares"], ["admin", "quota"]]


class OnTerminals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = harness.Pool().start_server()
        cls.addClassCleanup(cls.pool.close)
        cls.curly = cls.pool.client("curly").start()
        cls.pool.wait_machines(1)
        cls.done = cls.pool.submit("--name", "訓練データ-" + "x" * 60, "--output", "made", "--", "sh",
                                   "-c", "echo 1 > made")[0]
        cls.pool.wait_state(cls.done, "done")
        cls.running = cls.pool.submit("--", "sleep", "1000")[0]
        cls.pool.wait_state(cls.running, "running")
        path = os.path.join(cls.pool.folder, "b.toml")
        with open(path, "w") as f:
            f.write('[[job]]\nname = "array"\nprogram = "true"\ncount = 1000\n')
        cls.waiting = cls.pool.submit(path)

    def environment(self, **variables):
        env = self.pool.environment()
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            env.pop(name, None)
        env["TERM"] = "xterm"
        env.update(variables)
        return env

    def on_terminal(self, *words, columns=80, rows=24, **variables):
        return OnTerminal([SUBLET] + [str(w) for w in words], self.environment(**variables),
                          columns, rows)

    def shown(self, *words, **options):
        with self.on_terminal(*words, **options) as terminal:
            self.assertEqual(terminal.wait(), 0, terminal.written)
            return terminal.written

    def test_every_list_fits(self):
        lists = LISTS + [["show", self.done], ["show", self.running]]
        for words in lists:
            for columns in (20, 33, 80):
                with self.subTest(words=words, columns=columns):
                    written = self.shown(*words, columns=columns, NO_COLOR="1")
                    self.assertNotIn(b"\x1b", written)
                    for line in lines(written):
                        self.assertLessEqual(width(line), columns, line)

    def test_the_important_stays(self):
        """At 20 columns: job id and state; machine name, state and free slots."""
        text = self.shown("ls", columns=20, NO_COLOR="1").decode()
        self.assertRegex(text, r"(?m)^ *%d +running" % self.running)
        self.assertRegex(text, r"(?m)^%d-%d" % (self.waiting[0], self.waiting[-1]))
        text = self.shown("machines", columns=20, NO_COLOR="1").decode()
        self.assertRegex(text, r"(?m)^curly +busy +0/1\r$")
        batch = self.pool.job(self.waiting[0])["batch"]
        text = self.shown("show", "--batch", batch, columns=20, NO_COLOR="1").decode()
        self.assertLessEqual(max(map(len, text.split("\r\n\r\n")[1].split("\r\n"))), 20)
        # Cut text is marked.
        self.assertIn("訓", self.shown("ls", "--all", columns=40, NO_COLOR="1").decode())
        self.assertIn("…", self.shown("ls", "--all", columns=40, NO_COLOR="1").decode())

    def test_an_array_is_a_row(self):
        out = self.pool.run("ls")[1].splitlines()
        self.assertEqual([l.split()[0] for l in out[1:]],
                         ["%d-%d" % (self.waiting[0], self.waiting[-1]), str(self.running)])
        self.assertEqual(len(self.pool.run("ls", "--each-job", "--limit", 2000)[1].splitlines()),
                         1 + 1 + 1000)

    def test_ended_neighbours_are_a_row(self):
        """An array in which some non-adjacent indices have ended and some wait."""
        with harness.Pool() as pool:
            pool.start_server()
            path = os.path.join(pool.folder, "b.toml")
            with open(path, "w") as f:
                f.write('[[job]]\nname = "part"\nprogram = "sh"\ncount = 12\n'
                        'arguments = ["-c", "exit $(({index} % 6 == 3))"]\n')
            first = pool.submit(path)[0]
            batch = pool.job(first)["batch"]
            pool.client("moe", slots=2).start()
            self.assertEqual(pool.run("wait", "--batch", batch)[0], 1)
            for words in (["show", "--batch", batch], ["ls", "--batch", batch, "--reverse"]):
                rows = [line.split()[0] for line in pool.run(*words)[1].splitlines()
                        if " part " in line]
                self.assertEqual(rows, ["%d-%d" % (first, first + 2), str(first + 3),
                                        "%d-%d" % (first + 4, first + 8), str(first + 9),
                                        "%d-%d" % (first + 10, first + 11)], words)
            self.assertEqual(len(pool.sublet("show", "--batch", batch)["jobs"]), 12)

    def test_colours(self):
        for words in (["ls"], ["machines"], ["report"], ["top", "--once"]):
            self.assertIn(b"\x1b[", self.shown(*words))
            for off in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}):
                self.assertNotIn(b"\x1b", self.shown(*words, **off), (words, off))
            done = subprocess.run([SUBLET] + words, env=self.environment(),
                                  timeout=harness.PATIENCE,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            self.assertNotIn(b"\x1b", done.stdout, words)
        # An empty NO_COLOR has no effect (no-color.org).
        self.assertIn(b"\x1b[", self.shown("ls", NO_COLOR=""))

    def test_no_terminal_no_limit(self):
        text = self.pool.run("ls", "--all")[1]
        self.assertIn("訓練データ-" + "x" * 60, text)

    def test_waiting_on_a_dumb_terminal(self):
        """Separate lines, not one that is overwritten."""
        for term, over in (("xterm", True), ("dumb", False)):
            with self.on_terminal("wait", self.running, TERM=term) as terminal:
                terminal.wait_written(b"0 of 1 done")
                terminal.press(b"\x03")
                self.assertEqual(terminal.wait(), 130)
                self.assertEqual(b"\x1b" in terminal.written, over, term)

    def test_closed_pipe(self):
        """No message, and the status that a shell reports for SIGPIPE."""
        for words in LISTS + [["--help"], ["show", self.done], ["why", self.running],
                              ["logs", self.done, "--json"], ["ls", "--json"], ["top", "--json"]]:
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([SUBLET] + [str(w) for w in words], env=self.environment(),
                                  stdin=subprocess.DEVNULL, stdout=writer, timeout=harness.PATIENCE,
                                  stderr=subprocess.PIPE)
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (141, b""), words)

    def test_reader_that_has_enough(self):
        """`sublet ls | head -1` with more output than a pipe holds."""
        with harness.Pool() as pool:
            pool.start_server()
            path = os.path.join(pool.folder, "b.toml")
            with open(path, "w") as f:
                f.write('[[job]]\nname = "%s"\nprogram = "true"\ncount = 5000\n' % ("n" * 100))
            pool.submit(path)
            for words, first in ((["ls", "--each-job", "--limit", "5000"], b"ID"),
                                 (["ls", "--json", "--limit", "5000"], b'{"jobs":[{')):
                done = subprocess.run(
                    ["bash", "-c", '"$@" | head -c 10; exit ${PIPESTATUS[0]}', "bash", SUBLET] +
                    words, env=pool.environment(), stdin=subprocess.DEVNULL,
                    timeout=harness.PATIENCE,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual((done.stderr, done.returncode), (b"", 141), words)
                self.assertEqual(done.stdout.strip()[:len(first)], first)


class Top(unittest.TestCase):
    """`top` follows the pool's changes and restores the terminal."""

    @classmethod
    def setUpClass(cls):
        cls.pool = harness.Pool().start_server()
        cls.addClassCleanup(cls.pool.close)
        cls.curly = cls.pool.client("curly").start()
        cls.pool.wait_machines(1)

    def top(self, *words, columns=80, rows=24, **variables):
        env = dict(self.pool.environment(), TERM="xterm", NO_COLOR="1")
        for name in ("COLUMNS", "LINES"):
            env.pop(name, None)
        env.update(variables)
        return OnTerminal([SUBLET, "top"] + list(words), env, columns, rows)

    def check_left(self, terminal):
        self.assertTrue(terminal.is_as_it_was())
        self.assertTrue(terminal.written.endswith(b"\x1b[?25h" + LEAVE), terminal.written[-200:])
        self.assertEqual(terminal.written.count(ENTER), 1)

    def test_ends_and_leaves_the_terminal(self):
        for key, status in ((b"q", 0), (b"\x03", 130), (b"xQ", 0)):
            with self.top() as terminal:
                terminal.wait_written(b"curly")
                harness.wait_for(lambda: not terminal.is_as_it_was(), "the keys to be read")
                terminal.press(key)
                self.assertEqual(terminal.wait(), status)
                self.check_left(terminal)
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.top() as terminal:
                terminal.wait_written(b"curly")
                terminal.process.send_signal(number)
                self.assertEqual(terminal.wait(), 128 + number)
                self.check_left(terminal)

    def test_stop_keys_do_nothing(self):
        with self.top() as terminal:
            at = terminal.wait_written(b"curly")
            harness.wait_for(lambda: not terminal.is_as_it_was(), "the keys to be read")
            terminal.press(b"\x1a\x1c")  # Ctrl-Z, Ctrl-\
            terminal.wait_written(b"curly", at)
            terminal.press(b"q")
            self.assertEqual(terminal.wait(), 0)
            self.check_left(terminal)

    def test_follows_the_pool(self):
        with self.top() as terminal:
            at = terminal.wait_written(b"jobs      0")
            job = self.pool.submit("--name", "evil\x1b[2J", "--", "sleep", "1000")[0]
            at = terminal.wait_written(b"jobs      1: 1 running", at)
            at = terminal.wait_written(b"0/1", at)
            self.curly.owner("active")
            at = terminal.wait_written(b"owner came back", at)
            at = terminal.wait_written(b"1 busy", at)
            at = terminal.wait_written(b"jobs      1: 1 waiting", at)
            at = terminal.wait_written(b"evictions 1 ", at)
            self.pool.sublet("rm", job)
            terminal.wait_written(b"removed", at)
            self.curly.owner("away")
            terminal.press(b"q")
            self.assertEqual(terminal.wait(), 0)
        self.pool.wait_machines(1)

    def test_fits_and_is_resized(self):
        with self.top(columns=20, rows=6) as terminal:
            at = terminal.wait_written(b"machines  1: 1 idle")
            self.frame_fits(terminal, 0, 20, 6)
            terminal.resize(70, 30)
            at = terminal.wait_written(b"curly", at)
            terminal.wait_written(b"\x1b[J", at)
            self.frame_fits(terminal, at, 70, 30)
            terminal.press(b"q")
            self.assertEqual(terminal.wait(), 0)

    def frame_fits(self, terminal, since, columns, rows):
        frame = terminal.written[since:].split(b"\x1b[H")[-1].split(b"\x1b[J")[0]
        shown = frame.replace(b"\x1b[2J", b"").replace(b"\x1b[K", b"").decode()
        shown = shown.replace("\r", "").split("\n")
        self.assertLessEqual(len(shown), rows)
        for line in shown:
            self.assertLess(width(line), columns, shown)

    def test_survives_the_server(self):
        pool = harness.Pool().start_server()
        self.addCleanup(pool.close)
        with self.top("--server", pool.socket, columns=200) as terminal:
            at = terminal.wait_written(b"machines  0")
            pool.kill_supervisor()
            at = terminal.wait_written(b"no answer: no server", at)
            pool.start_server()
            at = terminal.wait_written(b"evictions", at)
            harness.wait_for(lambda: b"no answer" not in terminal.read().split(b"\x1b[H")[-2],
                             "the notice to go")
            terminal.press(b"q")
            self.assertEqual(terminal.wait(), 0)
            self.check_left(terminal)

    def test_quits_while_the_server_hangs(self):
        pool = harness.Pool().start_server()
        self.addCleanup(pool.close)
        with self.top("--server", pool.socket) as terminal:
            terminal.wait_written(b"machines  0")
            pids = [pool.supervisor.pid, pool.server_pid()]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                # A frame is drawn every second, except during a call to the server.
                quiet = [time.monotonic(), len(terminal.read())]

                def is_asking():
                    if len(terminal.read()) > quiet[1]:
                        quiet[:] = [time.monotonic(), len(terminal.written)]
                    return time.monotonic() > quiet[0] + 3

                harness.wait_for(is_asking, "a call to hang")
                terminal.press(b"q")
                self.assertEqual(terminal.wait(), 0)
                self.check_left(terminal)
            finally:
                for pid in reversed(pids):
                    os.kill(pid, signal.SIGCONT)

    def test_once(self):
        for words, env in ((["--once"], {}), ([], {"TERM": "dumb"})):
            with self.top(*words, **env) as terminal:
                self.assertEqual(terminal.wait(), 0)
                self.assertTrue(terminal.is_as_it_was())
                self.assertNotIn(b"\x1b", terminal.written)
                self.assertIn(b"curly", terminal.written)
        status, out, err = self.pool.run("top")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("machines  1: 1 idle", out)
        status, out, err = self.pool.run("top", "--server", "/nowhere/x.sock")
        self.assertEqual((status, out, err.count("\n")), (8, "", 1))

    @unittest.skipUnless(os.geteuid() == 0, "becomes another user")
    def test_another_user(self):
        """Sees machines and waiting users, but only their own events and evictions."""
        program = self.pool.public(SUBLET)

        def nobody(*words):
            done = subprocess.run([program, "top"] + list(words), user=65534, group=65534, cwd="/",
                                  extra_groups=[], env=self.pool.environment(), text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=harness.PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return done.stdout

        job = self.pool.submit("--", "sleep", "1000")[0]
        self.addCleanup(self.pool.sublet, "rm", job)
        self.pool.wait_state(job, "running")
        seen = json.loads(nobody("--json"))
        self.assertEqual((seen["events"], seen["evictions_own"]), ([], True))
        self.assertEqual(seen["machines"][0]["running"], [])
        self.assertEqual(seen["jobs"]["running"], 1)
        self.assertEqual([s["active"] for s in seen["standings"]], [1])
        self.assertIn("evictions 0 of your jobs in the last hour\n", nobody())

    def test_failing_at_once_says_so(self):
        with self.top("--server", "/nowhere/x.sock") as terminal:
            self.assertEqual(terminal.wait(), 8)
            self.assertIn(b"no server at /nowhere/x.sock", terminal.written)
            self.assertNotIn(ENTER, terminal.written)


if __name__ == "__main__":
    unittest.main()
