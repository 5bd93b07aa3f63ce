"""Interrupts a save before each of its steps: by SIGKILL, by a power failure (unsynced data is
lost) and by an error of that step. A whole generation must always exist, and the next save must
work."""

import array
import contextlib
import errno
import io
import os
import signal
import unittest

from . import checkpoint
from ._files import Disk
from .testing import Case, exit_of, fork

POWER_FAILED = 42
SAVED, FAILED = 0, 1


class Trouble:
    """A disk on which step number `steps` does not happen, but `failure`: an errno, a signal, or
    None for a power failure."""

    def __init__(self, steps, failure, has_links=True):
        self.steps = steps
        self.failure = failure
        self.has_links = has_links
        self.unsynced = None

    def step(self):
        self.steps -= 1
        if self.steps != 0:
            return
        if isinstance(self.failure, signal.Signals):
            os.kill(os.getpid(), self.failure)
        if self.failure is not None:
            raise OSError(self.failure, os.strerror(self.failure))
        if self.unsynced is not None:
            os.ftruncate(self.unsynced, 0)
        os._exit(POWER_FAILED)

    def create(self, folder, name):
        self.step()
        fd = Disk.create(folder, name)
        self.unsynced = os.dup(fd)
        return fd

    def write(self, fd, data, offset):
        self.step()
        # Only half of it: a write is not atomic either.
        return Disk.write(fd, data[:len(data) // 2] if len(data) > 100 else data, offset)

    def sync(self, fd):
        self.step()
        self.unsynced = None
        Disk.sync(fd)

    def close(self, fd):
        self.step()
        Disk.close(fd)

    def link(self, folder, old, new):
        self.step()
        if not self.has_links:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        Disk.link(folder, old, new)

    def rename(self, folder, old, new):
        self.step()
        Disk.rename(folder, old, new)

    def remove(self, folder, name):
        self.step()
        Disk.remove(folder, name)


class CrashTest(Case):
    def test_killed_before_every_step(self):
        self.everywhere(signal.SIGKILL)

    def test_killed_before_every_step_without_links(self):
        self.everywhere(signal.SIGKILL, has_links=False)

    def test_power_fails_before_every_step(self):
        self.everywhere(None)

    def test_power_fails_before_every_step_without_links(self):
        self.everywhere(None, has_links=False)

    def test_power_fails_in_the_first_save(self):
        self.everywhere(None, generations=0)

    def test_power_fails_after_a_fallback(self):
        self.everywhere(None, damaged=True)

    def test_every_step_fails_with_an_error(self):
        for error in (errno.ENOSPC, errno.EIO):
            self.everywhere(error)

    def test_power_fails_in_the_save_after_a_failed_one(self):
        for has_links in (True, False):
            for fails in range(1, 15):
                steps, end = 0, None
                while end != SAVED:
                    steps += 1
                    self.start_with(2)
                    end = self.save(steps, None, has_links, fails)
                    resumed = self.whole()
                    self.assertIn(resumed, (4,) if end == SAVED else (2, 3, 4), (fails, steps))

    def start_with(self, generations, damaged=False):
        for name in os.listdir(self.folder):
            os.remove(os.path.join(self.folder, name))
        program = self.program()
        for value in range(1, generations + 1):
            self.set(program, value)
        program[0].close()
        if damaged:
            self.write(b"rubbish")

    def program(self):
        c = checkpoint.open("crash", 1, path=self.path, period=0)
        return c, c.array("steps", array.array("q", bytes(800)))

    @staticmethod
    def set(program, value):
        c, steps = program
        for at in range(len(steps)):
            steps[at] = value
        return c.save()

    def save(self, steps, failure, has_links, fails=None):
        """Saves 3 in a child, with trouble at that step; or 3 with an error at step `fails`, and
        then 4 with that trouble. Returns how the child ended."""
        def body():
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            program = self.program()
            program[0].point()  # sets a damaged file aside
            value = 3
            if fails is not None:
                program[0]._files.disk = Trouble(fails, errno.EIO, has_links)
                try:
                    self.set(program, value)
                except OSError:
                    pass
                value = 4
            program[0]._files.disk = Trouble(steps, failure, has_links)
            try:
                self.set(program, value)
            except OSError:
                return FAILED
            return FAILED if program[0]._files.disk.steps == 0 else SAVED
        return exit_of(fork(body))

    def resumed(self):
        """The value from which a new run resumes; None if it starts from the beginning."""
        c, steps = self.program()
        try:
            if not c.resumed:
                return None
            self.assertEqual(len(set(steps)), 1)
            # The remains of the last save must not disturb the next two.
            self.assertTrue(c.save() and c.save())
            return steps[0]
        finally:
            c.close()

    def everywhere(self, failure, has_links=True, generations=2, damaged=False):
        before = 1 if damaged else 2 if generations else None
        steps, end = 0, None
        while end != SAVED:
            steps += 1
            self.start_with(generations, damaged)
            end = self.save(steps, failure, has_links)
            expected = POWER_FAILED if failure is None else \
                -failure if isinstance(failure, signal.Signals) else FAILED
            self.assertIn(end, (SAVED, expected))
            with self.subTest(step=steps):
                resumed = self.whole(but_for="state" if damaged else None)
                self.assertIn(resumed, (3,) if end == SAVED else (3, before))
        self.assertGreater(steps, 8)

    def whole(self, but_for=None):
        """As resumed(); no file but that one was found damaged."""
        text = io.StringIO()
        with contextlib.redirect_stderr(text):
            resumed = self.resumed()
        self.assertNotIn("damaged", text.getvalue().replace("%s is damaged" % but_for, ""))
        return resumed


if __name__ == "__main__":
    unittest.main()
