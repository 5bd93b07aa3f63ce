"""The source's tables, with the figures of a run of ./demo beside them. Each function
takes measurements and returns a Table; layout() fits one to any width."""

import collections
import re
import statistics
import textwrap

import source

GAP = "  "
NARROWEST_LAST = 12  # the last column is wrapped, but not below this width

# notes: the paragraphs under the table.
Table = collections.namedtuple("Table", "title columns rows notes")
# One training job: `alone` and `pooled` are its output and its weights;
# `attempts` is its attempt_list of `sublet show --json`.
Training = collections.namedtuple("Training", "epochs alone pooled attempts")


def layout(table, width):
    """The rows as lines of at most `width` characters: in columns if they fit,
    with the last one wrapped if necessary, else one value per line."""
    columns = [title.split("\n") for title in table.columns]
    natural = [max([len(word) for word in title] + [len(row[i]) for row in table.rows])
               for i, title in enumerate(columns)]
    last = width - sum(natural[:-1]) - len(GAP) * (len(natural) - 1)
    if last < min(natural[-1], NARROWEST_LAST) or last < max(map(len, columns[-1])):
        return stacked(table, width)
    widths = natural[:-1] + [min(last, natural[-1])]
    right = [all(re.fullmatch(r"[0-9.]+|-", row[i]) for row in table.rows)
             for i in range(len(columns))]

    def line(cells):
        words = [cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(cells, widths, right)]
        return GAP.join(words).rstrip()

    height = max(map(len, columns))
    lines = [line([(([""] * height) + title)[len(title) + i] for title in columns])
             for i in range(height)]
    for row in table.rows:
        parts = textwrap.wrap(row[-1], widths[-1]) or [""]
        lines.append(line(list(row[:-1]) + parts[:1]))
        lines += [line([""] * (len(row) - 1) + [part]) for part in parts[1:]]
    return lines


def stacked(table, width):
    lines = []
    titles = [title.replace("\n", " ") for title in table.columns]
    for row in table.rows:
        lines += textwrap.wrap("%s %s" % (titles[0], row[0]), width)
        for title, cell in zip(titles[1:], row[1:]):
            lines += textwrap.wrap("%s: %s" % (title, cell), width, initial_indent="  ",
                                   subsequent_indent="    ")
    return lines


def tell(screen, table):
    screen.say()
    screen.say(table.title)
    screen.lines(layout(table, screen.width))
    for note in table.notes:
        screen.say(note)


# -- T4.1 ---------------------------------------------------------------------


def correctness(out):
    """As the program prints it: training/test."""
    return "/".join(re.findall(r"correctness (\d\.\d{3})", out or "")) or "-"


def published(pair):
    return "%.3f/%.3f" % pair


def same(training):
    return training.pooled == training.alone


def formula_4_1(tests):
    """Formula 4.1: tests with the same result, tests, and their quotient."""
    alike = sum(tests)
    return alike, len(tests), alike / len(tests)


def t4_1(trainings):
    rows = []
    for t in trainings:
        theirs = source.T4_1[t.epochs]
        rows.append(("%d" % t.epochs, published(theirs.alone), published(theirs.pool),
                     correctness(t.alone[0]), correctness(t.pooled[0]),
                     "yes" if same(t) else "NO"))
    theirs = formula_4_1([c.pool == c.alone for c in source.T4_1.values()])
    ours = formula_4_1([same(t) for t in trainings])
    return Table(
        "T4.1 Correctness (training/test), interrupted in the pool and undisturbed",
        ("epochs", "source\nalone", "source\nin its pool", "here\nalone", "here\nin the pool",
         "all bits\nthe same"), rows,
        ["Formula 4.1, same results / tests: source %d/%d = %g, here %d/%d = %g." % (theirs + ours),
         "What differs: the source compares three digits; here every bit of the weights and of "
         "the output must agree. The source gives neither its network, nor how it split the "
         "letters, nor the initial weights, so the levels are similar, not equal."])


# -- T4.2 ---------------------------------------------------------------------


def evictions(attempts):
    return [a for a in attempts if a["ended"] == "owner came back"]


def quiesce_ms(attempts):
    return [a["quiesce_us"] / 1000 for a in evictions(attempts) if a["quiesce_us"] >= 0]


def spread(values, form, unit):
    if not values:
        return "none"
    least, most, mean, median = (form % figure(values) for figure in (
        min, max, statistics.mean, statistics.median))
    return "%d interruption%s, %s to %s %s, mean %s, median %s" % (
        len(values), "s"[:len(values) > 1], least, most, unit, mean, median)


def t4_2(trainings, search):
    """`search`: the attempts of the code-breaking jobs."""
    rows = []
    for t in trainings:
        rows.append(("%d" % t.epochs, " ".join("%d" % s for s in source.T4_2[t.epochs]),
                     " ".join("%.1f" % ms for ms in quiesce_ms(t.attempts)) or "-"))
    theirs = [s for seconds in source.T4_2.values() for s in seconds]
    ours = [ms for t in trainings for ms in quiesce_ms(t.attempts)]
    return Table(
        "T4.2 Quiesce time of each interruption: the owner is back -> all processes gone",
        ("epochs", "source\nseconds", "here\nmilliseconds"), rows,
        ["Source: %s. Here: %s." % (spread(theirs, "%.4g", "s"), spread(ours, "%.3g", "ms")),
         "Code breaking: source under 1 s; here: %s." %
         spread(quiesce_ms(search), "%.3g", "ms"),
         "What differs: milliseconds, not seconds. This program can be stopped after every "
         "letter and writes its state in binary; the source says only that the time depends on "
         "the checkpoint code. Its table lists at most five interruptions per job, although its "
         "T4.3 counts up to 11. Its code breaking is killed and resumes from its last periodic "
         "save; here it also saves when it is interrupted."])


# -- T4.3 ---------------------------------------------------------------------


def resumed(attempts):
    """Evictions after which the next attempt resumed from a checkpoint made
    between 0 and 100 % of the work."""
    return sum(a["ended"] == "owner came back" and 0 < b["resumed_ppm"] < 1000000
               for a, b in zip(attempts, attempts[1:]))


def sizes(attempts):
    return [a["checkpoint_bytes"] for a in evictions(attempts) if a["checkpoint_bytes"] > 0]


def mean_bytes(values):
    return "%.1f" % statistics.mean(values) if values else "-"


def t4_3(trainings):
    rows = []
    for t in trainings:
        theirs = source.T4_3[t.epochs]
        rows.append(("%d" % t.epochs, "%d" % theirs.interruptions, "%d" % resumed(t.attempts),
                     "%.1f" % theirs.size, mean_bytes(sizes(t.attempts))))
    ours = [size for t in trainings for size in sizes(t.attempts)]
    peaks = [a["memory_peak"] for t in trainings for a in t.attempts if a["memory_peak"] > 0]
    notes = ["Source: %.2f kB on average; Condor's image of the same jobs %.2f MB, at most %.2f "
             "MB: %.0f times as large." %
             (source.T4_3_AVERAGE_KB, source.T4_3_CONDOR_MB, source.T4_3_CONDOR_MOST_MB,
              source.T4_3_CONDOR_MB * 1000 / source.T4_3_AVERAGE_KB)]
    if ours and peaks:
        average, peak = statistics.mean(ours), statistics.mean(peaks)
        notes.append("Here: %.2f kB on average; the processes' peak memory %.2f MB: an image of it "
                     "would be %.0f times as large." %
                     (average / 1000, peak / 1e6, peak / average))
    notes.append("What differs: the source's sizes vary from one checkpoint to the next, as "
                 "numbers written as text do; here weights are binary doubles and always have the "
                 "same size. Interruptions here are those after which the job resumed from a "
                 "checkpoint made during its work.")
    return Table("T4.3 Checkpoints and interruptions of each job",
                 ("epochs", "source\ninterrupted", "here\ninterrupted", "source\naverage bytes",
                  "here\naverage bytes"), rows, notes)


# -- T4.4: its events; plot.py draws the load -----------------------------------

WORDS = {"a": "(a) idle: load below %.1f" % source.IDLE_BELOW, "b": "(b) gets a process",
         "c": "(c) the process leaves"}


def source_events(rows):
    """(minute, letter, load) of the rows in which something happens."""
    letters = {"idle": "a", "gets process": "b", "evacuates": "c"}
    events = []
    before = None
    for minute, load, state in rows:
        if state in letters and state != before:
            events.append((minute, letters[state], load))
        before = state
    return events


def paired(theirs, ours):
    """Pairs the n-th (a), (b), (c) of the source with ours, ordered by time."""
    def numbered(events):
        counts = collections.Counter()
        result = {}
        for minute, letter, load in events:
            counts[letter] += 1
            result[letter, counts[letter]] = (minute, load)
        return result

    theirs, ours = numbered(theirs), numbered(ours)
    keys = sorted(set(theirs) | set(ours), key=lambda k: (theirs.get(k) or ours[k])[0])
    return [(letter, theirs.get((letter, n)), ours.get((letter, n))) for letter, n in keys]


def idle_spans(events):
    """Minutes from each (a) to the following (b)."""
    spans = []
    idle = None
    for minute, letter, _ in events:
        if letter == "a":
            idle = minute
        elif letter == "b" and idle is not None:
            spans.append(minute - idle)
            idle = None
    return spans


def numbers(values, form):
    return ", ".join(form % v for v in values) or "none"


def t4_4(events, stays, seconds_a_minute):
    """`events`: machine -> [(minute, letter, load)] as measured, in order; `stays`:
    job -> the machines that it was on."""
    rows = []
    theirs = {name: source_events(rows_) for name, rows_ in source.T4_4.items()}
    for name in theirs:
        for letter, their, our in paired(theirs[name], events[name]):
            rows.append((name, WORDS[letter]) + tuple(
                cell for found, form in ((their, "%.0f"), (our, "%.1f"))
                for cell in ((form % found[0], "%.2f" % found[1]) if found else ("-", "-"))))

    def left_at(all_events):
        return numbers([load for e in all_events.values() for _, l, load in e if l == "c"], "%.2f")

    def waited(all_events):
        return "; ".join("%s after %s" % (name, numbers(idle_spans(e), "%.3g"))
                         for name, e in all_events.items())
    return Table(
        "T4.4 Events on two machines: idle below %.1f for %d minutes, evicted above %.2f" %
        (source.IDLE_BELOW, source.IDLE_MINUTES, source.EVICT_ABOVE),
        ("machine", "event", "source\nmin", "source\nload", "here\nmin", "here\nload"), rows,
        ["Here %s." % ", ".join("job %d was on %s" % (job, " then ".join(names))
                                for job, names in stays.items()),
         "What differs: in the source jobs leave at %s, below its own threshold; here at %s. "
         "There processes start before the %d minutes have passed (%s), here not (%s). The "
         "source gives no reason for either." %
         (left_at(theirs), left_at(events), source.IDLE_MINUTES, waited(theirs), waited(events)),
         "Its load includes the job's own, which evicts the job; here only the owner's counts. "
         "The owners' loads here are simulated for the load monitors (rule classic), %g s for "
         "a minute of the source; times and loads are from the monitors' samples and the "
         "server's records." % seconds_a_minute])
