"""The plot of T4.4: a machine's load over time, the source's and ours, as characters
for a terminal and as SVG."""

import collections
from xml.sax.saxutils import escape

import source
import tables as demo_tables

MOST_LOAD = 4.0
ROWS = 16  # of a plot in the terminal
MARGIN = 6  # columns left of it

# samples: [(minute, owner's load, the jobs' load)] in order; events: [(minute, letter, load)].
Trace = collections.namedtuple("Trace", "samples events")


def busy_spans(events, end):
    """Spans in which a job was running: from each (b) to the next (c), or the end."""
    spans = []
    since = None
    for minute, letter, _ in events:
        if letter == "b" and since is None:
            since = minute
        elif letter == "c" and since is not None:
            spans.append((since, minute))
            since = None
    return spans + ([(since, end)] if since is not None else [])


class Grid:
    """Characters at (minute, load); later ones overwrite earlier ones."""

    def __init__(self, width):
        self.columns = max(10, width - MARGIN)
        self.cells = [[" "] * self.columns for _ in range(ROWS)]

    def column(self, minute):
        return max(0, min(self.columns - 1, int(minute * self.columns / source.T4_4_MINUTES)))

    def row(self, load):
        """0 is the lowest."""
        return max(0, min(ROWS - 1, int(load * ROWS / MOST_LOAD)))

    def point(self, minute, load, mark):
        self.cells[self.row(load)][self.column(minute)] = mark

    def threshold(self, load):
        for column in range(0, self.columns, 2):
            self.cells[self.row(load)][column] = "-"

    def strip(self, events):
        """One line: = while a job is running, and the events' letters."""
        line = [" "] * self.columns
        for since, until in busy_spans(events, source.T4_4_MINUTES):
            for column in range(self.column(since), self.column(until) + 1):
                line[column] = "="
        for minute, letter, _ in events:
            line[self.column(minute)] = letter
        return "".join(line).rstrip()

    def axis(self):
        line = [" "] * self.columns
        step = 10 if self.columns >= 40 else 40
        for minute in range(0, source.T4_4_MINUTES, step):
            for i, digit in enumerate("%d" % minute):
                line[self.column(minute) + i] = digit
        return "".join(line).rstrip()


def draw(name, theirs, ours, screen):
    """Lines for a terminal. `theirs` as in T4_4, `ours` a Trace."""
    grid = Grid(screen.width)
    grid.threshold(source.IDLE_BELOW)
    grid.threshold(source.EVICT_ABOVE)
    for minute, owner, job in ours.samples:
        if job > 0.05:
            grid.point(minute, owner + job, ".")
    for minute, load, _ in theirs:
        grid.point(minute, load, "o")
    for minute, owner, _ in ours.samples:
        grid.point(minute, owner, "*")
    labels = {grid.row(MOST_LOAD): "%.2f" % MOST_LOAD, 0: "0",
              grid.row(source.EVICT_ABOVE): "%.2f" % source.EVICT_ABOVE,
              grid.row(source.IDLE_BELOW): "%.2f" % source.IDLE_BELOW}
    colours = {"*": "cyan", "o": "yellow", "-": "faint", ".": "faint"}
    lines = [name]
    for row in reversed(range(ROWS)):
        cells = "".join(screen.paint(c, colours[c]) if c in colours else c
                        for c in "".join(grid.cells[row]).rstrip())
        lines.append("%4s |%s" % (labels.get(row, ""), cells))
    lines.append("     +" + "-" * grid.columns)
    lines.append(" min  " + grid.axis())
    lines.append("src   " + grid.strip(source_trace(theirs).events))
    lines.append("here  " + grid.strip(ours.events))
    return lines


LEGEND = ("* owner's load here, . plus the job's; o the source's load, including its job's; "
          "= a job is running; a idle, b gets a process, c the process leaves; minutes of the "
          "source")


def source_trace(rows):
    return Trace([(minute, load, 0) for minute, load, _ in rows], demo_tables.source_events(rows))


# -- SVG ----------------------------------------------------------------------

WIDTH, HEIGHT = 880, 300  # of one machine's panel
LEFT, RIGHT, TOP, BOTTOM = 60, 40, 30, 70


def x_of(minute):
    return LEFT + minute * (WIDTH - LEFT - RIGHT) / source.T4_4_MINUTES


def y_of(load):
    return HEIGHT - BOTTOM - min(load, MOST_LOAD) * (HEIGHT - TOP - BOTTOM) / MOST_LOAD


def text(x, y, words, **attributes):
    more = "".join(' %s="%s"' % (k.replace("_", "-"), v) for k, v in attributes.items())
    return '<text x="%.1f" y="%.1f"%s>%s</text>' % (x, y, more, escape(words))


def polyline(points, style):
    return '<polyline fill="none" %s points="%s"/>' % (
        style, " ".join("%.1f,%.1f" % (x_of(m), y_of(load)) for m, load in points))


def strip(events, y, colour, name):
    """A bar while a job is running, and the events' letters."""
    parts = [text(LEFT - 12, y + 9, name, text_anchor="end")]
    for since, until in busy_spans(events, source.T4_4_MINUTES):
        parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="12" fill="%s" '
                     'fill-opacity="0.3"/>' % (x_of(since), y, x_of(until) - x_of(since), colour))
    for minute, letter, load in events:
        parts.append('<g><title>%s at minute %.1f, load %.2f</title>%s</g>' %
                     (letter, minute, load,
                      text(x_of(minute), y + 10, letter, text_anchor="middle", fill=colour)))
    return parts


def panel(name, theirs, ours, top):
    parts = ['<g transform="translate(0 %d)">' % top,
             text(LEFT, TOP - 12, name, font_weight="bold")]
    for load in (0, 1, 2, 3, 4):
        parts.append(text(LEFT - 6, y_of(load) + 4, "%d" % load, text_anchor="end"))
    for minute in range(0, source.T4_4_MINUTES + 1, 10):
        parts.append(text(x_of(minute), HEIGHT - BOTTOM + 16, "%d" % minute,
                          text_anchor="middle"))
    for load in (source.IDLE_BELOW, source.EVICT_ABOVE):
        parts.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#888" '
                     'stroke-dasharray="4 4"/>' %
                     (x_of(0), y_of(load), x_of(source.T4_4_MINUTES), y_of(load)))
        parts.append(text(x_of(source.T4_4_MINUTES) + 6, y_of(load) + 4, "%.2f" % load,
                          fill="#888"))
    parts.append(polyline([(m, owner + job) for m, owner, job in ours.samples],
                          'stroke="#0a6ebd" stroke-opacity="0.35"'))
    parts.append(polyline([(m, load) for m, load, _ in theirs],
                          'stroke="#c0651a" stroke-dasharray="2 3"'))
    parts += ['<circle cx="%.1f" cy="%.1f" r="2.5" fill="#c0651a"/>' % (x_of(m), y_of(load))
              for m, load, _ in theirs]
    parts.append(polyline([(m, owner) for m, owner, _ in ours.samples],
                          'stroke="#0a6ebd" stroke-width="2"'))
    parts += strip(source_trace(theirs).events, HEIGHT - BOTTOM + 24, "#c0651a", "source")
    parts += strip(ours.events, HEIGHT - BOTTOM + 42, "#0a6ebd", "here")
    return parts + ["</g>"]


def svg(traces):
    """`traces`: machine -> Trace. The whole picture as text."""
    head = 46
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
             'font-size="11">' % (WIDTH, head + HEIGHT * len(traces)),
             '<rect width="100%" height="100%" fill="#fff"/>',
             text(LEFT, 20, "T4.4 Load and events of two machines over time", font_size=14),
             text(LEFT, 36, "blue: the owner's load here, faint: plus the job's; brown: "
                  "the source's load, including its job's; minutes of the source")]
    for i, (name, trace) in enumerate(traces.items()):
        parts += panel(name, source.T4_4[name], trace, head + i * HEIGHT)
    return "\n".join(parts + ["</svg>"]) + "\n"
