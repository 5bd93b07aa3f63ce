"""Helpers of this folder's tests: temporary folders, child processes waited for with a deadline,
and what was written to stderr."""

import contextlib
import io
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from . import checkpoint
from ._status import Page

PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(PYTHON)
PATIENCE = 60  # seconds; for hangs, not for speed


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain for " + what)
        time.sleep(0.001)


def exit_of(pid):
    """The exit status of a child; minus the signal that ended it."""
    ended = []

    def gone():
        pid_then, status = os.waitpid(pid, os.WNOHANG)
        if pid_then:
            ended.append(os.waitstatus_to_exitcode(status))
        return pid_then != 0
    try:
        wait_for(gone, "a child to end")
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    return ended[0]


def fork(body):
    """Runs body() in a child; returns its pid. Its exit status is the body's result, that of a
    SystemExit, or 99 for another exception."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 99
    signal.alarm(2 * PATIENCE)  # however the test ends
    try:
        status = body() or 0
    except SystemExit as left:
        status = left.code
    except BaseException as error:
        os.write(2, ("%s: %s\n" % (type(error).__name__, error)).encode())
    finally:
        os._exit(status)


class Case(unittest.TestCase):
    """Each test has a folder of its own and no pool."""

    def setUp(self):
        # In memory where possible: hundreds of saves would mostly wait for the disk's flush.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        folder = tempfile.TemporaryDirectory(prefix="sublet-python-", dir=memory)
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "state")
        for name in ("SUBLET_CHECKPOINT_DIR", "SUBLET_STATUS", "SUBLET_CHECKPOINT_PERIOD"):
            os.environ.pop(name, None)
            self.addCleanup(os.environ.pop, name, None)
        # SIGUSR1 is ignored after the first checkpoint of a process.
        self.addCleanup(signal.signal, signal.SIGUSR1, signal.getsignal(signal.SIGUSR1))

    def read(self, name="state"):
        with open(os.path.join(self.folder, name), "rb") as f:
            return f.read()

    def write(self, data, name="state"):
        with open(os.path.join(self.folder, name), "wb") as f:
            f.write(data)

    def files(self):
        """Name -> contents of all files in the folder."""
        return {name: self.read(name) for name in sorted(os.listdir(self.folder))}

    def opened(self, program="test", layout=1, **options):
        """A checkpoint without periodic saves, closed at the test's end."""
        options.setdefault("path", self.path)
        c = checkpoint.open(program, layout, period=0, **options)
        self.addCleanup(c.close)
        return c

    def refused(self, pattern, call, *args, **options):
        """call() is refused, and nothing on disk changes."""
        before = self.files()
        with self.assertRaisesRegex(checkpoint.CheckpointRefused, pattern):
            call(*args, **options)
        self.assertEqual(self.files(), before)

    @contextlib.contextmanager
    def says(self, pattern):
        """What the block writes to stderr contains the pattern."""
        text = io.StringIO()
        with contextlib.redirect_stderr(text):
            yield
        self.assertRegex(text.getvalue(), pattern)

    def enter_pool(self):
        """The environment that a shepherd gives to a job. Returns its status page."""
        self.write(bytes(mmap.PAGESIZE), "status")
        os.environ["SUBLET_CHECKPOINT_DIR"] = self.folder
        os.environ["SUBLET_STATUS"] = os.path.join(self.folder, "status")
        return Page(os.environ["SUBLET_STATUS"])


def run(arguments, **options):
    """Runs a program with the package on its path; stdout as text."""
    environment = {**os.environ, "PYTHONPATH": PYTHON, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(arguments, env=environment, timeout=PATIENCE, text=True,
                          stdout=subprocess.PIPE, **options)
