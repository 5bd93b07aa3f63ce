"""Programs in processes of their own, with a pool's environment and a status page."""

import array
import os
import resource
import signal
import sys
import unittest

from . import checkpoint
from .testing import Case, exit_of, fork, run, wait_for

# Prints a sum that depends on every pass and on the random numbers.
PROGRAM = """
import random, sys
from sublet import checkpoint
with checkpoint.open("sums", 1, period=0) as c:
    total = c.value("total", 0.0)
    random.seed(7)
    c.generator("random", random)
    outer, inner = c.range("outer", 30), c.range("inner", 300)
    for i in outer:
        for j in inner:
            total.value += random.random() * (i + j)
            c.progress(300 * i + j, 30 * 300)
    print(repr(total.value))
"""


def count_for_ever(period=0):
    """Counts as fast as it can and saves when asked. Never ends by itself."""
    with checkpoint.open("counter", 1, period=period) as c:
        steps = c.value("steps", 0)
        while True:
            steps.value += 1
            c.progress(steps.value, 1 << 30)
            c.point()


def quiet(body, *arguments):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return body(*arguments)


class SignalsTest(Case):
    def setUp(self):
        super().setUp()
        self.page = self.enter_pool()

    def working(self, pid, beyond=0):
        page = self.page
        wait_for(lambda: page["aware"] == 1 and page["left"] == 0 and
                 page["progress_ppm"] > beyond, "process %d to work" % pid)

    def steps(self):
        """What is saved, without disturbing the page."""
        os.environ.pop("SUBLET_STATUS")
        c = checkpoint.open("counter", 1, period=0)
        os.environ["SUBLET_STATUS"] = os.path.join(self.folder, "status")
        steps = c.value("steps", 0).value
        c.close()
        return steps

    def test_sigterm_saves_and_leaves(self):
        before = 0
        for number in range(1, 4):
            page, ppm = self.page, max(self.page["progress_ppm"], 0)
            pid = fork(count_for_ever)
            self.working(pid, ppm)
            os.kill(pid, signal.SIGTERM)
            self.assertEqual(exit_of(pid), checkpoint.EXIT_LEFT)
            self.assertEqual(
                {field: page[field] for field in (
                    "magic", "version", "left", "generation", "resumed_generation", "wants_seen",
                    "leave_seen", "save_failed_errno", "checkpoint_bytes", "resumed_progress_ppm")},
                {"magic": 0x54534253, "version": 2, "left": 1, "generation": number,
                 "resumed_generation": number - 1, "wants_seen": 1, "leave_seen": 1,
                 "save_failed_errno": 0, "checkpoint_bytes": 128 + 64 + 8,
                 "resumed_progress_ppm": ppm if number > 1 else -1})
            self.assertGreater(page["saved_boot_ns"], 0)
            self.assertGreater(page["save_ns"], 0)
            self.assertGreater(self.steps(), before)
            before = self.steps()

    def test_a_rehearsal_leaves_at_a_point(self):
        self.addCleanup(os.environ.pop, "SUBLET_CHECKPOINT_STOP_AT")
        for point in (3, 4):
            os.environ["SUBLET_CHECKPOINT_STOP_AT"] = str(point)
            pid = fork(count_for_ever)
            self.assertEqual(exit_of(pid), checkpoint.EXIT_LEFT)
            self.assertEqual((self.page["points"], self.page["left"]), (point, 1))
        self.assertEqual(self.steps(), 7)

    def test_sigusr1_saves_and_goes_on(self):
        pid = fork(count_for_ever)
        self.working(pid)
        for number in (1, 2, 3):
            os.kill(pid, signal.SIGUSR1)
            wait_for(lambda: self.page["generation"] == number, "generation %d" % number)
            self.assertEqual(self.page["wants_seen"], number)
            self.working(pid, self.page["progress_ppm"])
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(exit_of(pid), -signal.SIGKILL)
        self.assertEqual((self.page["left"], self.page["leave_seen"]), (0, 0))
        self.assertGreater(self.steps(), 0)

    def test_a_request_during_a_save_is_answered_by_that_save(self):
        def body():
            c = checkpoint.open("counter", 1, period=0)
            c.value("steps", 0)
            write = c._files.disk.write

            class Asks(c._files.disk):
                @staticmethod
                def write(fd, data, offset):
                    os.kill(os.getpid(), signal.SIGTERM)
                    return write(fd, data, offset)
            c._files.disk = Asks
            os.kill(os.getpid(), signal.SIGUSR1)
            c.point()
            return 1
        self.assertEqual(exit_of(fork(body)), checkpoint.EXIT_LEFT)
        self.assertEqual((self.page["generation"], self.page["left"]), (1, 1))
        self.assertEqual(self.page["wants_seen"], 2)

    def test_requests_while_it_leaves_count_as_one(self):
        def body():
            try:
                count_for_ever()
            finally:
                for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGTERM):
                    os.kill(os.getpid(), number)
        pid = fork(body)
        self.working(pid)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(exit_of(pid), checkpoint.EXIT_LEFT)
        page = self.page
        self.assertEqual((page["aware"], page["left"], page["generation"], page["leave_seen"]),
                         (1, 1, 1, 1))

    def test_leaves_even_when_the_save_fails(self):
        def body():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
            return quiet(count_for_ever)
        pid = fork(body)
        self.working(pid)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(exit_of(pid), checkpoint.EXIT_LEFT)
        self.assertEqual((self.page["left"], self.page["generation"]), (1, 0))
        self.assertGreater(self.page["save_failed_errno"], 0)

    def test_saves_periodically(self):
        os.environ["SUBLET_CHECKPOINT_PERIOD"] = "1"
        pid = fork(lambda: count_for_ever(period=0))
        wait_for(lambda: self.page["generation"] >= 2, "two periodic saves")
        self.assertEqual(self.page["wants_seen"], 0)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(exit_of(pid), checkpoint.EXIT_LEFT)

    def test_a_period_that_is_no_number_is_ignored(self):
        for text in ("", "-1", "1.5", "1234567890"):
            os.environ["SUBLET_CHECKPOINT_PERIOD"] = text
            with self.says("SUBLET_CHECKPOINT_PERIOD is not a number of seconds; ignored"):
                self.opened().close()

    def test_without_a_pool_sigterm_ends_it(self):
        os.environ.pop("SUBLET_CHECKPOINT_DIR")
        read, write = os.pipe()

        def body():
            with checkpoint.open("counter", 1) as c:
                c.point()
                os.write(write, b"x")
                while True:
                    c.point()
        pid = fork(body)
        os.read(read, 1)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(exit_of(pid), -signal.SIGTERM)
        self.assertEqual(self.page["aware"], 0)
        os.close(read)
        os.close(write)

    def test_late_requests_do_no_harm(self):
        def body():
            with checkpoint.open("counter", 1, period=0) as c:
                c.value("steps", 0)
                c.finish()
                os.kill(os.getpid(), signal.SIGUSR1)
                c.point()
            os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(exit_of(fork(body)), -signal.SIGTERM)
        self.assertEqual((self.page["aware"], self.page["left"]), (0, 0))
        self.assertEqual(self.page["progress_ppm"], 1000000)

    def test_a_large_first_save_is_put_off(self):
        c = checkpoint.open("large", 1)
        self.addCleanup(c.close)
        c.array("large", bytearray(40000000))  # 40 s of a run are a hundred times 0.4 s
        for seconds, generation in ((30, 0), (10, 1), (0, 2)):
            c._timer._started_ns -= seconds * 10**9
            c._timer._due_ns = 0
            c._wanted = True
            c.point()
            self.assertEqual(c.generation, generation)

    def test_says_a_line(self):
        c = self.opened()
        for text, shown in (("epoch 12: error 0.031", "epoch 12: error 0.031"), ("\n", "\n"),
                            (160 * "x", 160 * "x"), (161 * "x", 160 * "x"),
                            (159 * "x" + "\u00e9", 159 * "x"), (158 * "x" + "\u20ac", 158 * "x"),
                            (158 * "x" + "\u00e9!", 158 * "x" + "\u00e9"),
                            ("\udcff", "?"), ("a\0b", "a b"), ("", "")):
            before = self.page["message_count"]
            c.say(text)
            self.assertEqual(self.page["message_count"], before + 2)
            with open(os.environ["SUBLET_STATUS"], "rb") as f:
                message = f.read()[88:248]
            self.assertEqual(message.split(b"\0")[0].decode(), shown)
        self.page["message_count"] = 0xffffffff
        c.say("wrapped")
        self.assertEqual(self.page["message_count"], 0)

    def test_bad_status_pages_are_done_without(self):
        for make in (lambda path: None, lambda path: self.write(b"short", "page"),
                     os.mkfifo, os.mkdir):
            path = os.path.join(self.folder, "page")
            if os.path.exists(path):
                (os.rmdir if os.path.isdir(path) else os.remove)(path)
            make(path)
            os.environ["SUBLET_STATUS"] = path
            with self.says("cannot use the status page .*; continuing without it"):
                c = self.opened()
            c.progress(1, 2)
            self.assertTrue(c.save())
            c.close()

    def test_progress(self):
        c = self.opened()
        for done, total, ppm in ((0, 10, 0), (1, 3, 333333), (10, 10, 1000000), (11, 10, 1000000),
                                 (1, 0, -1), (2**62, 2**63, 500000), (-1, 10, 0)):
            c.progress(done, total)
            self.assertEqual(self.page["progress_ppm"], ppm, (done, total))
        c.progress(1, 4)
        c.save()
        c.close()
        self.opened()
        self.assertEqual(self.page["resumed_progress_ppm"], 250000)

    def test_a_child_is_not_the_job(self):
        """It ends by SIGTERM, writes neither files nor the page, and does not keep the lock."""
        c = self.opened()
        c.array("steps", array.array("q", [1]))
        self.assertTrue(c.save())
        before = self.files()

        def body():
            c.progress(1, 2)
            c.point()
            if c.save() or c.save():
                return 1
            c.finish()
            c.close()
            os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(exit_of(fork(body)), -signal.SIGTERM)
        self.assertEqual(self.files(), before)
        started, go_on = os.pipe(), os.pipe()

        def lives_on():
            os.write(started[1], b"x")
            return len(os.read(go_on[0], 1)) - 1
        pid = fork(lives_on)
        os.read(started[0], 1)
        c.close()
        self.opened().close()  # although the child lives
        os.write(go_on[1], b"x")
        self.assertEqual(exit_of(pid), 0)
        for fd in started + go_on:
            os.close(fd)

    def test_interrupted_and_identical(self):
        """A program that is asked to leave again and again ends with the output of an undisturbed
        run; each run leaves in another pass."""
        os.environ.pop("SUBLET_CHECKPOINT_DIR")
        expected = run([sys.executable, "-c", PROGRAM], check=True).stdout
        os.environ["SUBLET_CHECKPOINT_DIR"] = self.folder
        leaves = """
import os, signal
from sublet import checkpoint
progress = checkpoint.Checkpoint.progress
left = iter(range(%d))
def leaving(self, done, total):
    progress(self, done, total)
    if next(left, None) is None:
        os.kill(os.getpid(), signal.SIGTERM)
checkpoint.Checkpoint.progress = leaving
"""
        runs = 0
        for passes in (1, 299, 300, 301, 3, 2000, 3000, 9000):
            done = run([sys.executable, "-c", leaves % passes + PROGRAM])
            runs += 1
            if done.returncode == 0:
                break
            self.assertEqual((done.returncode, done.stdout), (checkpoint.EXIT_LEFT, ""))
        self.assertEqual((done.stdout, runs), (expected, 8))
        self.assertEqual(self.page["resumed_generation"], 7)


if __name__ == "__main__":
    unittest.main()
