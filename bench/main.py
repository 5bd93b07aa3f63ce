"""Runs the named benchmarks. Each figure is printed with the physical limit, or the best
other program, of the same run if there is one (docs/performance.md explains them).

With --json every line is an object: bench, metric, value, unit, and for some metrics limit.
Other load on the machine makes the figures wrong. $SUBLET_BIN is the folder of the programs
to measure; without it they are built first."""

import argparse
import difflib
import importlib
import os
import signal
import subprocess
import sys

import measure
import harness

NAMES = ["throughput", "latency", "neighbours", "submit", "dispatch", "decide", "machines",
         "restart", "idle", "owner", "interference", "checkpoint", "goodput", "transfer"]


def bench(name):
    return importlib.import_module(name)


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench/run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter,
        usage="bench/run NAME... [--json] [--quick] [--only PART] | bench/run --list")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.add_argument("--quick", action="store_true",
                        help="only check that everything works; the figures mean nothing")
    parser.add_argument("--only", metavar="PART", action="append",
                        help="only this part of a benchmark that has parts; repeatable")
    parser.add_argument("--list", action="store_true", help="list the benchmarks")
    return parser


def main():
    parser = arguments()
    asked = parser.parse_args()
    if asked.list:
        for name in NAMES:
            print("%-12s %s" % (name, bench(name).__doc__.split("\n", 1)[0]))
        return 0
    if not asked.names:
        parser.print_usage(sys.stderr)
        return 2
    for name in asked.names:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            print("bench: unknown name '%s'; %s" % (
                name, "did you mean '%s'?" % near[0] if near else "--list shows all"),
                file=sys.stderr)
            return 2
    for part in asked.only or ():
        for name in asked.names:
            parts = getattr(bench(name), "PARTS", [])
            if part not in parts:
                print("bench: '%s' has no part '%s'%s" % (
                    name, part, "; it has " + ", ".join(parts) if parts else ""), file=sys.stderr)
                return 2
    if "SUBLET_BIN" not in os.environ:
        prepare = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prepare")
        if subprocess.run([prepare]).returncode != 0:
            return 1
    for name in asked.names:
        try:
            options = {"only": asked.only} if asked.only else {}
            bench(name).run(measure.Report(name, asked.json), asked.quick, **options)
        except (measure.Unmeasurable, measure.Missed, harness.Timeout,
                harness.Failed) as error:
            print("bench: %s: %s" % (name, error), file=sys.stderr)
            return 1
    return 0


class Ended(BaseException):
    """Raised by a signal, with its number, so that pools are shut down on the way out."""


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end(number, _frame):
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)  # no signal interrupts the clean-up
    raise Ended(number)


if __name__ == "__main__":
    for one in SIGNALS:
        signal.signal(one, end)
    try:
        sys.exit(main())
    except Ended as ended:
        sys.exit(128 + ended.args[0])
    except BrokenPipeError:  # the reader of stdout has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
