"""The pictures of README.md, as SVG on standard output.

  python3 docs/pictures.py top > docs/top.svg           a real pool, as `sublet top` shows it
  python3 docs/pictures.py latency > docs/latency.svg   the figures of docs/performance.md

`top` starts a server and four workstations in a private folder, submits the training jobs of
examples/back-propagation, lets an owner come back, and draws what the command prints on a
terminal of 100 columns."""

import math
import os
import pty
import re
import subprocess
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test"))

import harness

COLUMNS = 100
LETTERS = os.path.join(harness.ROOT, "examples", "back-propagation")
# The terminal's colours by their SGR parameter, and its own.
INK = {"31": "#f14c4c", "32": "#23d18b", "33": "#e5c07b", "2": "#8a8a8a", "0": "#d4d4d4"}
PAPER = "#1e1e1e"


def svg(width, height, name, lines):
    return "\n".join(['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
                      'viewBox="0 0 %d %d" role="img">' % (width, height, width, height),
                      "<title>%s</title>" % escape(name)] + lines + ["</svg>", ""])


def on_terminal(pool, *words):
    """What `sublet` prints on a terminal, escape sequences included."""
    main, terminal = pty.openpty()
    shown = subprocess.Popen([os.path.join(harness.BIN, "sublet")] + list(words), stdout=terminal,
                             stdin=terminal, stderr=terminal,
                             env={**pool.environment(), "TERM": "xterm", "COLUMNS": str(COLUMNS)})
    os.close(terminal)
    text = b""
    try:
        while piece := os.read(main, 65536):
            text += piece
    except OSError:
        pass  # the command has ended
    os.close(main)
    shown.wait()
    return text.decode().replace("\r\n", "\n").rstrip("\n")


def busy_pool(pool):
    """Four workstations. One owner comes back, another leaves, and the job moves."""
    pool.start_server()
    curly, _, _, shemp = [pool.client(name) for name in ("curly", "larry", "moe", "shemp")]
    shemp.owner("active")
    for client in pool.clients.values():
        client.start()
    pool.wait_machines(3)
    harness.wait_for(lambda: sum(m["speed"] > 0 for m in pool.machines()) == 3,
                     "the speeds of the idle machines")
    with open(os.path.join(LETTERS, "letters.toml")) as f:
        batch = f.read().replace("../../build/bin", harness.BIN)
    batch = batch.replace('inputs = ["', 'inputs = ["%s/' % LETTERS)
    path = os.path.join(pool.folder, "letters.toml")
    with open(path, "w") as f:
        f.write(batch)
    pool.submit(path)

    def running(evictions):
        return [job for job in pool.sublet("ls", "--state", "running")["jobs"]
                if job["evictions"] >= evictions]

    harness.wait_for(lambda: len(running(0)) == 3, "three jobs to run")
    curly.owner("active")
    harness.wait_for(lambda: pool.sublet("top")["evictions_last_hour"] == 1, "an eviction")
    shemp.owner("away")
    harness.wait_for(lambda: running(1), "the job to resume")


def top():
    with harness.Pool() as pool:
        busy_pool(pool)
        text = on_terminal(pool, "top", "--once")
    return drawn(text)


def drawn(text):
    """A terminal's text with its colours."""
    lines = text.split("\n")
    step, line = 8.4, 18
    width, height = round(COLUMNS * step + 24), len(lines) * line + 24
    shapes = ['<rect width="%d" height="%d" rx="6" fill="%s"/>' % (width, height, PAPER),
              '<g font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" '
              'font-size="14" fill="%s" xml:space="preserve">' % INK["0"]]
    for row, written in enumerate(lines):
        column, ink = 0, "0"
        for part in re.split(r"(\x1b\[[0-9;]*m)", written):
            if part.startswith("\x1b"):
                ink = part[2:-1] or "0"
            elif part:
                # Each part has its own place and length, whatever the reader's font.
                shapes.append('<text x="%.1f" y="%d" textLength="%.1f" fill="%s">%s</text>' %
                              (12 + column * step, 26 + row * line, len(part) * step, INK[ink],
                               escape(part)))
                column += len(part)
    return svg(width, height, "sublet top", shapes + ["</g>"])


def figures():
    """(what, p50, p99, p99 in a slow hour or None, budget or None) in ms, of the benchmarks
    `owner` and `latency`, from the first table of docs/performance.md."""
    with open(os.path.join(harness.ROOT, "docs", "performance.md")) as f:
        table = f.read().partition("## Budgets")[2].partition("\n\n## ")[0]
    found = []
    for line in table.split("\n"):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 7 and cells[2] in ("`owner`", "`latency`"):
            taken = re.match(r"p50 ([\d.]+), p99 ([\d.]+) ms", cells[3])
            slow = re.search(r"in a slow hour [\d.]+, ([\d.]+) ms", cells[3])
            budget = re.match(r"p99 ≤ ([\d.]+) (m?s)", cells[6])
            found.append((cells[1], float(taken[1]), float(taken[2]), slow and float(slow[1]), budget
                          and float(budget[1]) * (1 if budget[2] == "ms" else 1000)))
    return found


def latency():
    """Bars from p50 to p99 on a logarithmic scale."""
    rows = figures()
    left, right, top_edge, line = 430, 860, 34, 30
    height = top_edge + line * len(rows) + 44

    def x(ms):
        return left + (right - left) * (math.log10(ms) + 1) / 4  # 0.1 ms to 1 s

    shapes = ['<rect width="%d" height="%d" fill="#ffffff"/>' % (right + 40, height),
              '<g font-family="system-ui, sans-serif" font-size="13" fill="#222222">']
    for ms, name in ((0.1, "0.1 ms"), (1, "1 ms"), (10, "10 ms"), (100, "100 ms"), (1000, "1 s")):
        shapes += ['<path d="M%.1f %d V%d" stroke="#dddddd"/>' % (x(ms), top_edge - 8, height - 40),
                   '<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x(ms), top_edge - 14, name)]
    for number, (what, p50, p99, slow, budget) in enumerate(rows):
        y = top_edge + line * number + line / 2
        shapes += ['<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (left - 12, y + 4, escape(what)),
                   '<path d="M%.1f %.1f H%.1f" stroke="#4078c0" stroke-width="6"/>' % (x(p50), y, x(p99)),
                   '<circle cx="%.1f" cy="%.1f" r="4.5" fill="#4078c0"/>' % (x(p50), y),
                   '<path d="M%.1f %.1f v14" stroke="#1b3f70" stroke-width="3"/>' % (x(p99), y - 7)]
        if slow:
            shapes.append('<path d="M%.1f %.1f H%.1f m0 -5 v10" stroke="#4078c0" fill="none"/>' %
                          (x(p99), y, x(slow)))
        if budget:
            shapes.append('<path d="M%.1f %.1f v20" stroke="#c0392b" stroke-width="2" '
                          'stroke-dasharray="3 2"/>' % (x(budget), y - 10))
    shapes += ['<text x="14" y="%d">Dot: p50. Bar: to the p99; thin: to the p99 of a slow hour. Dashed: '
               'budget of the p99. Recorded in docs/performance.md.</text>' % (height - 14), "</g>"]
    return svg(right + 40, height, "Latencies, p50 to p99", shapes)


if __name__ == "__main__":
    drawings = {"top": top, "latency": latency}
    if len(sys.argv) != 2 or sys.argv[1] not in drawings:
        sys.exit(__doc__)
    sys.stdout.write(drawings[sys.argv[1]]())
