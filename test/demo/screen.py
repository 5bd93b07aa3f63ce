"""Output of ./demo: a terminal of any width, or none."""

import os
import textwrap
import time

NARROWEST = 20
COLOURS = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "faint": "2"}


class Screen:
    """Progress is one line that is rewritten, or without a terminal a line every EVERY_S
    seconds. No line is wider than the terminal (80 columns without one)."""

    EVERY_S = 5  # between two lines of progress without a terminal

    def __init__(self, out, environ):
        self.out = out
        self.live = out.isatty() and environ.get("TERM", "dumb") != "dumb"
        self.colour = self.live and not environ.get("NO_COLOR")
        self.width = max(NARROWEST, terminal_width(out, environ))
        self.told = None  # the last progress text; None after other output
        self.told_at = 0

    def paint(self, text, colour):
        return "\x1b[%sm%s\x1b[0m" % (COLOURS[colour], text) if self.colour else text

    def say(self, text=""):
        """A paragraph; continuation lines are indented like the first one."""
        indent = text[:len(text) - len(text.lstrip())]
        self.lines(textwrap.wrap(text, self.width, subsequent_indent=indent) or [""])

    def lines(self, lines):
        """Lines that already fit the width."""
        if self.live and self.told is not None:
            self.out.write("\r\x1b[K")
        self.told = None
        self.out.write("".join(line + "\n" for line in lines))
        self.out.flush()

    def progress(self, text):
        if self.live:
            # Leaves the last column free: some terminals wrap when it is written.
            line = text[:self.width - 1]
            self.out.write("\r%s\x1b[K" % line)
            self.out.flush()
        elif text != self.told and time.monotonic() - self.told_at >= self.EVERY_S:
            self.say(text)
            self.told_at = time.monotonic()
        self.told = text


def terminal_width(out, environ):
    try:
        return int(environ["COLUMNS"]) or 80
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size(out.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
