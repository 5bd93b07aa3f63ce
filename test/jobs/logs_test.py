"""A job's output, read while it runs and afterwards: through an eviction, through the
death of client and server, on a terminal, by other users."""

import json
import os
import pty
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

# Prints a line in each attempt, and continues when a file exists.
JOB = """echo begin $SUBLET_ATTEMPT; echo error $SUBLET_ATTEMPT >&2
for step in more end; do
  while [ ! -e %s/$step-$SUBLET_ATTEMPT ]; do sleep 0.05; done
  echo $step $SUBLET_ATTEMPT
done"""


class Follower:
    def __init__(self, pool, *args):
        self.pool = pool
        self.paths = [os.path.join(pool.folder, "follow.%s.%d" % (n, id(self)))
                      for n in ("out", "err")]
        out, err = [open(path, "wb") for path in self.paths]
        self.process = subprocess.Popen(
            [os.path.join(harness.BIN, "sublet"), "logs"] + [str(a) for a in args],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=pool.environment())
        out.close()
        err.close()

    def read(self, which=0):
        with open(self.paths[which], errors="surrogateescape") as f:
            return f.read()

    def wait_for(self, text, which=0):
        try:
            harness.wait_for(lambda: text in self.read(which), repr(text))
        except harness.Timeout as error:
            raise harness.Timeout("%s in what is followed: %r %r\n%s" % (
                error, self.read(0), self.read(1), self.pool.all_logs())) from None

    def wait(self):
        return self.process.wait(4 * harness.PATIENCE)


class Logs(unittest.TestCase):
    def start(self, pool, *options):
        return pool.submit(*options, "--", "sh", "-c", JOB % pool.folder)[0]

    def let(self, pool, step):
        open(os.path.join(pool.folder, step), "w").close()

    def wait_text(self, pool, job, text, *options):
        harness.wait_for(lambda: pool.run("logs", job, *options)[1] == text,
                         "the text %r\n%s" % (text, pool.all_logs()))

    def test_followed_over_an_eviction(self):
        with harness.Pool() as pool:
            pool.start_server()
            job = self.start(pool)
            follower = Follower(pool, job, "--follow", "--both")
            follower.wait_for("is waiting for attempt 1", 1)
            curly = pool.client("curly").start()
            follower.wait_for("begin 1")
            follower.wait_for("error 1", 1)
            curly.kill()  # shepherd and job keep running
            self.let(pool, "more-1")
            curly.start()
            follower.wait_for("more 1")
            curly.owner("active")
            harness.wait_for(lambda: not curly.attempts(), "the job to leave\n" + pool.all_logs())
            pool.client("moe").start()
            pool.wait_state(job, "running")
            last = pool.attempts(job)[-1]["number"]
            follower.wait_for("begin %d" % last)
            old = pool.server_pid()
            pool.kill_server()
            self.let(pool, "more-%d" % last)
            harness.wait_for(lambda: (pool.about() or {}).get("server_pid") not in (None, str(old)),
                             "the supervisor to restart the server\n" + pool.log("server"))
            follower.wait_for("more %d" % last)
            self.let(pool, "end-%d" % last)
            self.assertEqual(follower.wait(), 0, follower.read(1))
            self.assertEqual(follower.read(), "begin 1\nmore 1\n" +
                             "begin {0}\nmore {0}\nend {0}\n".format(last))
            notes = follower.read(1)
            for part in ("attempt 1 on curly\n", "error 1\n",
                         "attempt 1 ended: owner came back; its last output is not kept\n",
                         "attempt %d on moe\n" % last, "error %d\n" % last):
                self.assertEqual(notes.count(part), 1, notes)
            status, out, err = pool.run("logs", job, "--attempt", 1)
            self.assertEqual((status, out), (4, ""), err)
            self.assertIn("the output of attempt 1 of job %d is not kept; only the last" % job, err)

    def test_offsets_when_characters_come_in_pieces(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            script = ("printf 'a\\303'; while [ ! -e %s/go ]; do sleep 0.05; done; "
                      "printf '\\244b\\n'")
            job = pool.submit("--", "sh", "-c", script % pool.folder)[0]
            follower = Follower(pool, job, "--follow", "--json")
            follower.wait_for('"text":"a"')
            self.let(pool, "go")
            self.assertEqual(follower.wait(), 0, follower.read(1))
            pieces = [json.loads(line) for line in follower.read().splitlines()]
            told = b""
            for piece in pieces:
                if "text" in piece:
                    self.assertEqual(piece["offset"], len(told), pieces)
                    told += piece["text"].encode()
            self.assertEqual(told, "a\u00e4b\n".encode())

    def test_read_while_it_runs_and_afterwards(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            job = self.start(pool)
            self.wait_text(pool, job, "begin 1\n")
            self.let(pool, "more-1")
            self.wait_text(pool, job, "begin 1\nmore 1\n", "--attempt", 1)
            whole = [("begin 1\nmore 1\n", ""), ("begin 1\nmore 1\nend 1\n", "")]
            for ended in (False, True):
                if ended:
                    self.let(pool, "end-1")
                    pool.wait_state(job, "done")
                text = whole[ended][0]
                with self.subTest(ended=ended):
                    self.assertEqual(pool.run("logs", job), (0, text, ""))
                    self.assertEqual(pool.run("logs", job, "--stderr"), (0, "error 1\n", ""))
                    self.assertEqual(pool.run("logs", job, "--both"), (0, text, "error 1\n"))
                    last = text.splitlines(True)[-1]
                    self.assertEqual(pool.run("logs", job, "--tail", 1), (0, last, ""))
                    self.assertEqual(
                        pool.sublet("logs", job, "--both"),
                        {"job": job, "attempt": 1, "machine": "curly",
                         "stdout": {"offset": 0, "text": text, "ended": ended, "cut": False},
                         "stderr": {"offset": 0, "text": "error 1\n", "ended": ended,
                                    "cut": False}})
            lines = [json.loads(line) for line in
                     pool.run("logs", job, "--follow", "--json")[1].splitlines()]
            self.assertEqual(lines, [{"attempt": 1, "machine": "curly"},
                                     {"attempt": 1, "stream": "stdout", "offset": 0, "text": text},
                                     {"job": job, "state": "done"}])
            status, _, err = pool.run("logs", job, "--attempt", 2)
            self.assertEqual(status, 4, err)
            self.assertIn("there is no attempt 2", err)
            self.assertEqual(pool.run("logs", 99)[0], 4)

    def test_end_of_a_job_that_fails_or_is_removed(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("--retries", 1, "--", "sh", "-c", "echo $SUBLET_ATTEMPT; exit 3")[0]
            status, out, err = pool.run("logs", job, "--follow")
            self.assertEqual(status, 1, err)
            self.assertIn("job %d failed" % job, err)
            self.assertTrue(out.endswith("2\n"), out)
            removed = self.start(pool)
            follower = Follower(pool, removed, "--follow")
            follower.wait_for("begin 1")
            pool.sublet("rm", removed)
            self.assertEqual(follower.wait(), 1)
            self.assertIn("job %d removed" % removed, follower.read(1))

    def test_stopped_follower(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            job = self.start(pool)
            follower = Follower(pool, job, "--follow")
            follower.wait_for("begin 1")
            follower.process.send_signal(signal.SIGINT)
            self.assertEqual(follower.wait(), 130)
            self.assertEqual(follower.read(1), "attempt 1 on curly\n")
            pool.wait_state(job, "running")

    def test_machine_that_does_not_answer(self):
        with harness.Pool(["server.call_timeout=500 ms"]) as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            job = self.start(pool)
            self.wait_text(pool, job, "begin 1\n")
            os.kill(curly.process.pid, signal.SIGSTOP)
            try:
                status, out, err = pool.run("logs", job)
                self.assertEqual((status, out), (8, ""), err)
                self.assertIn("curly, which runs attempt 1 of job %d, did not return" % job, err)
                self.assertIn("try again", err)
            finally:
                os.kill(curly.process.pid, signal.SIGCONT)
            # The call that timed out closed the connection; the client joins again.
            self.wait_text(pool, job, "begin 1\n")
            curly.kill()
            status, _, err = pool.run("logs", job)
            self.assertEqual(status, 8, err)

    def test_what_is_cut_off(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            batch = os.path.join(pool.folder, "b.toml")
            with open(batch, "w") as f:
                f.write('[[job]]\nprogram = "sh"\narguments = ["-c", "yes | head -c 3000000"]\n'
                        'limits = { output_text = "700 kB" }\n')
            job = pool.submit(batch)[0]
            status, out, err = pool.run("logs", job, "--follow")
            self.assertEqual(status, 0, err)
            self.assertEqual(out, "y\n" * 350000)
            self.assertIn("stdout was cut at the job's limit", err)

    def test_on_a_terminal(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            written = b"\x1b]0;gotcha\x07\ta\\b\xff \xe2\x82\xac\n"
            job = pool.submit("--", "printf", "".join("\\%03o" % c for c in written))[0]
            pool.wait_state(job, "done")

            def shown(*options):
                leader, follower = pty.openpty()
                command = [os.path.join(harness.BIN, "sublet"), "logs", str(job)] + list(options)
                with subprocess.Popen(command, stdout=follower, stdin=subprocess.DEVNULL,
                                      env=pool.environment()) as process:
                    os.close(follower)
                    text = b""
                    try:
                        while chunk := os.read(leader, 65536):
                            text += chunk
                    except OSError:
                        pass  # the other end has been closed
                    os.close(leader)
                self.assertEqual(process.returncode, 0)
                return text.replace(b"\r\n", b"\n")
            self.assertEqual(shown(), b"\\x1b]0;gotcha\\x07\ta\\b\\xff \xe2\x82\xac\n")
            self.assertEqual(shown("--raw"), written)
            done = subprocess.run([os.path.join(harness.BIN, "sublet"), "logs", str(job)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  env=pool.environment())
            self.assertEqual(done.stdout, written)

    @unittest.skipUnless(os.geteuid() == 0, "becomes another user")
    def test_others_are_refused(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            job = self.start(pool)
            self.wait_text(pool, job, "begin 1\n")
            for ended in (False, True):
                if ended:
                    self.let(pool, "more-1")
                    self.let(pool, "end-1")
                    pool.wait_state(job, "done")
                done = subprocess.run(
                    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                     pool.public(os.path.join(harness.BIN, "sublet")), "logs", str(job)], text=True,
                    cwd="/", env=pool.environment(), stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
                self.assertEqual((done.returncode, done.stdout), (5, ""), done.stderr)
                self.assertIn("belongs to root", done.stderr)


if __name__ == "__main__":
    unittest.main()
