"""./demo: its tables and plots at any width, and that an interrupted run leaves
nothing behind."""

import io
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import load as demo_load
import plot as demo_plot
import screen as demo_screen
import source
import tables
import harness

SVG = "{http://www.w3.org/2000/svg}"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def screen(columns, terminal=False, **environ):
    environ = dict({"COLUMNS": str(columns), "TERM": "xterm"}, **environ)
    return demo_screen.Screen(Terminal() if terminal else io.StringIO(), environ)


def attempt(ended="owner came back", resumed_ppm=500000, quiesce_us=3456, size=19200,
            memory_peak=1920000):
    return {"ended": ended, "resumed_ppm": resumed_ppm, "quiesce_us": quiesce_us,
            "checkpoint_bytes": size, "memory_peak": memory_peak}


def training(epochs=7, interruptions=2, weights=b"same"):
    out = "training correctness 0.734\ntest correctness 0.710\n"
    attempts = [attempt(resumed_ppm=-1 if i == 0 else 500000) for i in range(interruptions)]
    return tables.Training(epochs, (out, b"same"), (out, weights),
                           attempts + [attempt("done", quiesce_us=-1)])


def all_tables():
    jobs = [training(epochs, source.T4_3[epochs].interruptions) for epochs in source.T4_1]
    events = {"moe": [(0, "a", 0.4), (15, "b", 0.8), (25.1, "c", 2.34)], "curly": []}
    return [tables.t4_1(jobs), tables.t4_2(jobs, [attempt()]), tables.t4_3(jobs),
            tables.t4_4(events, {1: ["moe", "curly"]}, 0.5)]


def told(table, width):
    out = screen(width)
    tables.tell(out, table)
    return out.out.getvalue()


class Source(unittest.TestCase):
    def test_figures_agree_with_each_other(self):
        quiesce = [s for row in source.T4_2.values() for s in row]
        self.assertEqual((len(quiesce), min(quiesce), max(quiesce)), (30, 2, 61))
        self.assertEqual(statistics.median(quiesce), 22)
        self.assertAlmostEqual(statistics.mean(quiesce), 25.5, delta=0.05)
        for epochs, row in source.T4_2.items():
            self.assertEqual(len(row), min(5, source.T4_3[epochs].interruptions))
        self.assertEqual(list(source.T4_1), list(source.T4_3))
        for name, rows in source.T4_4.items():
            self.assertEqual(rows, sorted(rows))
            left = [load for _, letter, load in tables.source_events(rows) if letter == "c"]
            self.assertEqual(len(left), 2)
            self.assertTrue(all(2.25 <= load <= 2.29 for load in left), name)
        self.assertEqual(tables.idle_spans(tables.source_events(source.T4_4["curly"])), [15, 12])


class Tables(unittest.TestCase):
    def test_formula_4_1(self):
        jobs = [training(epochs) for epochs in source.T4_1]
        self.assertIn("here 8/8 = 1.", tables.t4_1(jobs).notes[0])
        jobs[3] = training(12, weights=b"other")
        table = tables.t4_1(jobs)
        self.assertIn("here 7/8 = 0.875.", table.notes[0])
        self.assertEqual([row[-1] for row in table.rows], ["yes"] * 3 + ["NO"] + ["yes"] * 4)
        self.assertEqual(table.rows[0][1:5], ("0.730/0.705",) * 2 + ("0.734/0.710",) * 2)

    def test_only_evictions_count(self):
        attempts = [attempt(quiesce_us=1500), attempt("failed", quiesce_us=9000, size=7),
                    attempt(quiesce_us=2500), attempt("done", resumed_ppm=1000000, quiesce_us=-1)]
        self.assertEqual(tables.quiesce_ms(attempts), [1.5, 2.5])
        self.assertEqual(tables.sizes(attempts), [19200, 19200])
        # The last attempt resumed at 100 %: not counted.
        self.assertEqual(tables.resumed(attempts), 1)
        row = tables.t4_2([training()._replace(attempts=attempts)], []).rows[0]
        self.assertEqual(row, ("7", "40 15", "1.5 2.5"))

    def test_a_job_without_interruptions(self):
        undisturbed = training(8, 0)
        self.assertEqual(tables.t4_2([undisturbed], []).rows[0][2], "-")
        self.assertEqual(tables.t4_3([undisturbed]).rows[0][2::2], ("0", "-"))
        self.assertIn("Here: none.", tables.t4_2([undisturbed], []).notes[0])

    def test_checkpoint_sizes(self):
        table = tables.t4_3([training()])
        self.assertEqual(table.rows[0], ("7", "2", "2", "21840.5", "19200.0"))
        self.assertIn("7.31 MB, at most 10.20 MB: 335 times", table.notes[0])
        self.assertIn("Here: 19.20 kB on average; the processes' peak memory 1.92 MB: an "
                      "image of it would be 100 times", table.notes[1])

    def test_events_stand_beside_those_of_the_source(self):
        events = {"moe": [(0, "a", 0.4), (15.04, "b", 0.8), (25.1, "c", 2.34)],
                  "curly": [(0, "a", 0.1), (15.1, "b", 0.1), (30, "c", 2.5), (40, "a", 0.9),
                            (55.5, "b", 0.1), (60, "c", 2.6), (78, "a", 0.5)]}
        table = tables.t4_4(events, {1: ["moe", "curly"]}, 0.5)
        moe = [row[1:] for row in table.rows if row[0] == "moe"]
        self.assertEqual(moe[1], ("(b) gets a process", "15", "0.85", "15.0", "0.80"))
        self.assertEqual(moe[2][1:], ("26", "2.28", "25.1", "2.34"))
        self.assertEqual(moe[3][1:], ("45", "0.97", "-", "-"))
        curly = [row[1:] for row in table.rows if row[0] == "curly"]
        self.assertEqual(curly[-1][1:], ("-", "-", "78.0", "0.50"))
        self.assertIn("leave at 2.28, 2.25, 2.28, 2.29, below its own threshold; here at 2.34, "
                      "2.50, 2.60.", table.notes[1])
        self.assertIn("curly after 15, 12), here not (moe after 15; curly after 15.1, 15.5)",
                      table.notes[1])
        self.assertIn("job 1 was on moe then curly", table.notes[0])

    def test_every_width(self):
        for table in all_tables():
            for width in (20, 27, 40, 60, 80, 200):
                text = told(table, width)
                self.assertLessEqual(max(map(len, text.splitlines())), width, text)
                words = text.split()
                for row in table.rows:
                    for cell in row:
                        for word in cell.split():
                            self.assertIn(word, words)

    def test_columns_stand_below_each_other(self):
        table = tables.Table("", ("name", "first\nsize"), [("x", "7"), ("long", "1234")], [])
        self.assertEqual(tables.layout(table, 80),
                         ["      first", "name   size", "x         7", "long   1234"])
        long = tables.Table("", ("name", "all"), [("curly", "11 22 33 44 55 66")], [])
        self.assertEqual(tables.layout(long, 19), ["name   all", "curly  11 22 33 44", "       55 66"])
        self.assertEqual(tables.layout(long, 18), ["name curly", "  all: 11 22 33 44", "    55 66"])
        self.assertEqual(tables.layout(table, 10),
                         ["name x", "  first", "    size:", "    7", "name long", "  first",
                          "    size:", "    1234"])


class Plot(unittest.TestCase):
    TRACE = demo_plot.Trace([(minute, minute / 40, 1 if minute >= 40 else 0)
                             for minute in range(80)], [(40, "b", 1.0), (60, "c", 2.4)])

    def draw(self, width, **options):
        return demo_plot.draw("moe", source.T4_4["moe"], self.TRACE, screen(width, **options))

    def test_points_lie_where_they_belong(self):
        lines = self.draw(86)  # a column for each minute
        rows = {load: next(l for l in lines if l.startswith(load))[6:].ljust(80)
                for load in ("4.00", "2.30", "1.00", "   0")}
        self.assertEqual(rows["   0"][:10], "*" * 10)  # from 0 to 0.25 in 10 minutes
        self.assertEqual(rows["2.30"][26], "o")  # 2.28
        self.assertEqual(rows["2.30"][52:54], "..")  # 1.3 of the owner and 1 of the job
        self.assertEqual(rows["1.00"][40:50], "*" * 10)
        self.assertEqual(rows["2.30"][2], "-")
        self.assertNotIn("*", rows["4.00"])
        here = next(l for l in lines if l.startswith("here"))
        self.assertEqual(here, "here  " + " " * 40 + "b" + "=" * 19 + "c")
        theirs = next(l for l in lines if l.startswith("src"))
        self.assertEqual(theirs[6:][15:27], "b==========c")

    def test_every_width(self):
        for width in (20, 33, 46, 80, 132):
            lines = self.draw(width)
            self.assertLessEqual(max(map(len, lines)), width, "\n".join(lines))
            self.assertEqual(len({line for line in lines if "*" in line}), 8, "\n".join(lines))

    def test_colour_only_where_it_is_wanted(self):
        self.assertIn("\x1b[36m*", "".join(self.draw(80, terminal=True)))
        plain = self.draw(80)
        for options in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertEqual(self.draw(80, terminal=True, **options), plain)
        coloured = [re.sub(r"\x1b\[\d+m", "", l) for l in self.draw(80, terminal=True)]
        self.assertEqual(coloured, plain)

    def test_picture(self):
        picture = demo_plot.svg({"moe": self.TRACE, "curly": self.TRACE})
        root = xml.etree.ElementTree.fromstring(picture)
        width, height = map(float, root.get("viewBox").split()[2:])
        panels = root.findall(SVG + "g")
        self.assertEqual(len(panels), 2)
        self.assertEqual(panels[1].get("transform"), "translate(0 %d)" % (46 + demo_plot.HEIGHT))
        self.assertEqual(height, 46 + 2 * demo_plot.HEIGHT)
        total, theirs, owner = panels[0].findall(SVG + "polyline")
        points = [tuple(map(float, p.split(","))) for p in owner.get("points").split()]
        self.assertEqual(len(points), 80)
        self.assertEqual(points[0], (demo_plot.LEFT, demo_plot.HEIGHT - demo_plot.BOTTOM))
        for line in (total, theirs, owner):
            for point in line.get("points").split():
                x, y = map(float, point.split(","))
                self.assertTrue(0 <= x <= width and 0 <= y <= demo_plot.HEIGHT, point)
        bar = panels[0].findall(SVG + "rect")[-1]
        self.assertAlmostEqual(float(bar.get("x")), demo_plot.x_of(40), delta=0.1)
        self.assertAlmostEqual(float(bar.get("width")), demo_plot.x_of(60) - demo_plot.x_of(40),
                               delta=0.1)
        self.assertIn("&lt;", demo_plot.text(0, 0, "a < b"))


class Load(unittest.TestCase):
    def test_the_owners_load_is_an_exponential_average(self):
        steps = [(0, 0.5), (10, 3), (12, 1)]
        self.assertEqual(demo_load.owners_load(steps, 0), 0.5)
        self.assertAlmostEqual(demo_load.owners_load(steps, 10), 0.5)
        self.assertAlmostEqual(demo_load.owners_load(steps, 11), 3 - 2.5 / math.e)
        at_12 = 3 - 2.5 * math.exp(-2)
        self.assertAlmostEqual(demo_load.owners_load(steps, 12), at_12)
        self.assertAlmostEqual(demo_load.owners_load(steps, 15), 1 + (at_12 - 1) * math.exp(-3))

    def test_events_of_a_monitor(self):
        def sample(at, load, state, reason, until_idle=-1):
            return demo_load.Sample(at, load, state, reason, until_idle)
        active, away, quiet = demo_load.ACTIVE, 2, 7
        samples = [sample(0.0, 1.2, active, demo_load.LOAD),
                   sample(1.0, 0.9, active, demo_load.SETTLING, 4.5),
                   sample(2.0, 0.8, active, demo_load.SETTLING, 3.5),
                   sample(5.5, 0.7, away, quiet, 0), sample(8.0, 2.2, away, quiet, 0),
                   sample(9.0, 2.31, active, demo_load.LOAD),
                   sample(10.0, 2.4, active, demo_load.LOAD)]
        self.assertEqual(demo_load.idle_events(samples, 5), [(0.5, "a", 0.9)])
        self.assertEqual(demo_load.leave_events(samples, [(6, 9.2)]), [(9.0, "c", 2.31)])
        self.assertEqual(demo_load.leave_events(samples, []), [])

    def test_a_rule_that_was_not_kept(self):
        def faults(events):
            return demo_load.faults({"moe": demo_plot.Trace([], events)})
        good = [(0, "a", 0.5), (15.02, "b", 0.5), (25, "c", 2.31), (40, "a", 0.9), (55, "b", 0.5),
                (70, "c", 2.4)]
        self.assertEqual(faults(good), [])
        self.assertEqual(faults(good[:5]), ["moe: fewer than two jobs started and left"])
        self.assertEqual(faults(good[:5] + [(70, "c", 2.29)]), ["moe: a job left at 2.29"])
        self.assertEqual(faults(good[:4] + [(52, "b", 0.5), good[5]]),
                         ["moe: a job started before 15 idle minutes"])


class Screen(unittest.TestCase):
    def test_a_terminal_has_one_line_of_progress(self):
        out = screen(20, terminal=True)
        out.progress("minute 1 of 80: all is well")
        out.progress("minute 2")
        out.say("done")
        self.assertEqual(out.out.getvalue(), "\rminute 1 of 80: all\x1b[K\rminute 2\x1b[K"
                                             "\r\x1b[Kdone\n")

    def test_without_a_terminal_progress_is_lines_now_and_then(self):
        for out in (screen(20), screen(20, terminal=True, TERM="dumb")):
            for i in range(1000):
                out.progress("minute %d of eighty, and more" % i)
            lines = out.out.getvalue().splitlines()
            self.assertLess(len(lines), 10)
            self.assertNotIn("\x1b", out.out.getvalue())
            self.assertLessEqual(max(map(len, lines)), 20)

    def test_widths_that_cannot_be(self):
        self.assertEqual(screen(3).width, 20)
        self.assertEqual(screen("wide").width, 80)
        self.assertEqual(screen(0).width, 80)


class Interrupted(unittest.TestCase):
    """The real demonstration, interrupted while it runs."""

    def interrupt(self, number, at, processes):
        """Sends the signal once a line with `at` has appeared and this many processes run."""
        demo = subprocess.Popen([sys.executable, "-B", os.path.join(harness.ROOT, "test",
                                                                    "demo", "demo.py"), "--fast"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)
        self.addCleanup(demo.stdout.close)
        self.addCleanup(lambda: demo.poll() is None and demo.kill())
        said = []
        for line in demo.stdout:
            said.append(line)
            if at in line:
                break

        def folders():
            return {found for pid in harness.children(demo.pid)
                    for found in re.findall(r"/tmp/sl-\w+/", command_line(pid))}

        def running(folder):
            return harness.processes_naming(folder, ("cmdline", "environ"))
        folder, = harness.wait_for(folders, "its pool\n" + "".join(said))
        harness.wait_for(lambda: len(running(folder)) >= processes, "its processes")
        # A terminal signals the whole foreground group; an impatient user repeats it.
        os.killpg(demo.pid, number)
        os.kill(demo.pid, number)
        rest = demo.stdout.read()
        self.assertEqual(demo.wait(), 128 + number, "".join(said) + rest)
        self.assertIn("demo: interrupted; 0 processes left, its folder is removed", rest)
        self.assertFalse(os.path.exists(folder))
        self.assertEqual(running(folder), [])

    def test_by_the_user(self):
        # The supervisor and its server, four clients and a job with its shepherd.
        self.interrupt(signal.SIGINT, "submitted", 8)

    def test_by_the_system(self):
        self.interrupt(signal.SIGTERM, "training undisturbed", 2)


def command_line(pid):
    try:
        with open("/proc/%d/cmdline" % pid) as f:
            return f.read().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


if __name__ == "__main__":
    unittest.main()
