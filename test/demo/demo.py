"""The demonstration behind ./demo (docs/demo.md). Exit status 0 only if every result
is identical and none lost, trainings were evicted at work at least 20 times, the search
found its key, and the two machines of T4.4 followed their rule."""

import contextlib
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import letters
import load as demo_load
import plot as demo_plot
import screen as demo_screen
import tables
import harness

WANTED_EVICTIONS = 20
PICTURE = os.path.join(os.path.dirname(harness.BIN), "demo", "load.svg")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    def __init__(self, number, _frame=None):
        super().__init__(number)
        self.number = number
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)  # no signal interrupts the clean-up


def interrupt(number, frame):
    raise Interrupted(number, frame)


@contextlib.contextmanager
def private_pool(pools, **options):
    """A pool that leaves neither a process nor its folder, whenever a signal arrives."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    pool = harness.Pool(**options)
    pools.append(pool)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        yield pool
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        pool.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def search_attempts(pool, batch):
    parts = pool.sublet("ls", "--batch", batch)["jobs"]
    return parts, [a for p in parts for a in pool.job(p["id"])["attempt_list"]]


def tell_search(screen, parts, key):
    removed = [p for p in parts if p["state"] == "removed"]
    screen.say("Search: key %s in the submitting folder; parts tried: %d, removed: %d%s; "
               "evictions: %d." % (key, sum(p["state"] == "done" for p in parts), len(removed),
                               " (%s)" % removed[0]["reason"] if removed else "",
                               evicted(parts)))


def evicted(jobs):
    return sum(job["evictions"] for job in jobs)


def tell_usage(screen, pool, trainings, parts):
    line, = pool.sublet("report", "pool")["usage"]
    screen.say("Usage (sublet report pool): %d jobs done in %d attempts, of which %d were evicted: "
               "%d of the trainings, %d of the search; CPU %.1f s, kept %.1f s, lost %.1f s; "
               "server %.1f s." %
               (line["jobs_done"], line["attempts"], line["evictions"], evicted(trainings),
                evicted(parts), line["cpu_us"] / 1e6, line["kept_us"] / 1e6,
                line["lost_us"] / 1e6, line.get("local_us", 0) / 1e6))


def correctness(screen, pools):
    """T4.1 to T4.3. Returns the summary and the failures, as text."""
    with private_pool(pools, server_sets=["scheduling.lease=6 s"]) as pool:
        started = time.monotonic()
        alone = letters.undisturbed(pool.folder, screen)
        seconds_an_epoch = 2 * (time.monotonic() - started) / sum(letters.EPOCHS)
        details, batch, folder = letters.run(pool, screen, seconds_an_epoch)
        trainings = letters.trainings(alone, details, folder)
        parts, search = search_attempts(pool, batch)
        tables.tell(screen, tables.t4_1(trainings))
        tables.tell(screen, tables.t4_2(trainings, search))
        tables.tell(screen, tables.t4_3(trainings))
        screen.say()
        key = letters.found_key(folder)
        tell_search(screen, parts, key)
        tell_usage(screen, pool, details, parts)
    identical = sum(map(tables.same, trainings))
    at_work = sum(tables.resumed(t.attempts) for t in trainings)
    lost = sum(job["state"] != "done" for job in details)
    summary = ("%d of %d results identical, %d lost; trainings evicted %d times, %d of them at "
               "work" % (identical, len(trainings), lost, evicted(details), at_work))
    wrong = []
    if identical < len(trainings) or lost:
        wrong.append("results differ, or jobs were lost")
    if at_work < WANTED_EVICTIONS:
        wrong.append("fewer than %d evictions of trainings at work" % WANTED_EVICTIONS)
    if key != "%010x" % letters.KEY:
        wrong.append("the key was not found")
    return summary, wrong


def endless(index):
    """Arguments of `sublet submit` for a training that outlasts the 80 minutes."""
    return ["--input", letters.DATA, "--", letters.PROGRAM, "--data",
            os.path.basename(letters.DATA), "--epochs", "1000000", "--seed", str(index)]


def load_over_time(screen, pools, fast):
    """T4.4. Returns the failures, as text."""
    seconds_a_minute = 0.3 if fast else 1.0
    with private_pool(pools) as pool:
        traces, stays = demo_load.play(pool, screen, endless, seconds_a_minute)
    tables.tell(screen, tables.t4_4({name: t.events for name, t in traces.items()}, stays,
                                    seconds_a_minute))
    for name, trace in traces.items():
        screen.say()
        screen.lines(demo_plot.draw(name, demo_load.source.T4_4[name], trace, screen))
    screen.say(demo_plot.LEGEND)
    try:
        os.makedirs(os.path.dirname(PICTURE), exist_ok=True)
        with open(PICTURE, "w") as f:
            f.write(demo_plot.svg(traces))
        screen.say("The plot as a picture: %s" % os.path.relpath(PICTURE))
    except OSError as error:
        screen.say("The picture could not be written: %s" % error)
    return demo_load.faults(traces)


def main(fast):
    screen = demo_screen.Screen(sys.stdout, os.environ)
    for one in SIGNALS:
        signal.signal(one, interrupt)
    if os.geteuid() != 0 and not harness.has_walls():
        screen.say("Jobs are not kept apart from your files and programs (weak = true): this kernel "
                   "permits an ordinary user no namespaces.")
    started = time.monotonic()
    pools = []
    try:
        summary, wrong = correctness(screen, pools)
        wrong += load_over_time(screen, pools, fast)
    except Interrupted as interrupted:
        left = sum(len(pool.processes()) for pool in pools)
        folders = [pool.folder for pool in pools if os.path.exists(pool.folder)]
        screen.say("demo: interrupted; %d processes left, %s" %
                   (left, "left: " + " ".join(folders) if folders else "its folder is removed"))
        return 128 + interrupted.number
    except (harness.Failed, harness.Timeout) as error:
        screen.lines(["demo: FAILED"] + str(error).splitlines())
        return 1
    screen.say()
    for sentence in wrong:
        screen.say("demo: FAILED: " + sentence)
    screen.say("demo: %s; took %.0f s" % (summary, time.monotonic() - started))
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main("--fast" in sys.argv[1:]))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
