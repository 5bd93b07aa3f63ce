"""Programs on a separate pseudo-terminal of a chosen size: their output, keys sent to
them, and the terminal's settings before and after."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
import unicodedata

import harness


class OnTerminal:
    """A program whose standard streams are a new terminal; a context manager."""

    def __init__(self, args, env, columns=80, rows=24, cwd=None):
        self.leader, self.follower = pty.openpty()
        self.resize(columns, rows)
        self.settings = termios.tcgetattr(self.follower)
        # Keys such as Ctrl-C reach the process whose controlling terminal this is.
        self.process = subprocess.Popen(
            args, stdin=self.follower, stdout=self.follower, stderr=self.follower, env=env,
            cwd=cwd, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.written = b""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.leader)
        os.close(self.follower)
        return False

    def resize(self, columns, rows):
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        """Returns the output since the last call."""
        while select.select([self.leader], [], [], 0)[0]:
            chunk = os.read(self.leader, 65536)
            if not chunk:
                break
            self.written += chunk
        return self.written

    def wait_written(self, part, since=0):
        """Waits for `part` after offset `since`; returns the length of the output then."""
        harness.wait_for(lambda: part in self.read()[since:], "%r on the terminal, not %r" %
                         (part, self.written[-2000:]))
        return len(self.written)

    def press(self, keys):
        os.write(self.leader, keys)

    def wait(self):
        """Returns the exit status; reads the output meanwhile."""
        end = time.monotonic() + harness.PATIENCE
        while self.process.poll() is None:
            self.read()
            if time.monotonic() > end:
                raise harness.Timeout("waited in vain for the program's end")
            time.sleep(0.01)
        self.read()
        return self.process.returncode

    def is_as_it_was(self):
        return termios.tcgetattr(self.follower) == self.settings


def lines(written):
    """The lines as shown on the terminal, without the last, empty one."""
    return written.decode().replace("\r\n", "\n").rstrip("\n").split("\n")


def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
