"""Measures the system, one question a name. Figures stand beside the physical limit or
the rival that was measured in the same run (docs/performance.md has them explained).

With --json every line is an object: bench, metric, value, unit, and limit where there is
one. A machine that does anything else meanwhile gives wrong figures. $SUBLET_BIN: programs
that are built already; without it they are built first."""

import argparse
import difflib
import importlib
import os
import signal
import subprocess
import sys

import measure
import harness

NAMES = ["throughput", "latency", "submit", "dispatch", "machines", "restart", "idle", "owner",
         "checkpoint", "transfer"]


def bench(name):
    return importlib.import_module(name)


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench/run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter,
        usage="bench/run NAME... [--json] [--quick] | bench/run --list")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure")
    parser.add_argument("--json", action="store_true", help="an object a line")
    parser.add_argument("--quick", action="store_true",
                        help="as little as shows that it works; the figures mean nothing")
    parser.add_argument("--list", action="store_true", help="the names, with a line about each")
    return parser


def main():
    parser = arguments()
    asked = parser.parse_args()
    if asked.list:
        for name in NAMES:
            print("%-11s %s" % (name, bench(name).__doc__.split("\n", 1)[0]))
        return 0
    if not asked.names:
        parser.print_usage(sys.stderr)
        return 2
    for name in asked.names:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            print("bench: unknown name '%s'; %s" % (
                name, "did you mean '%s'?" % near[0] if near else "--list tells all"),
                file=sys.stderr)
            return 2
    if "SUBLET_BIN" not in os.environ:
        prepare = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prepare")
        if subprocess.run([prepare]).returncode != 0:
            return 1
    for name in asked.names:
        try:
            bench(name).run(measure.Report(name, asked.json), asked.quick)
        except (measure.Unmeasurable, harness.Timeout, harness.Failed) as error:
            print("bench: %s: %s" % (name, error), file=sys.stderr)
            return 1
    return 0


class Ended(BaseException):
    """By a signal, whose number it has: pools are taken down on the way out."""


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end(number, _frame):
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)  # cleaning up is not interrupted again
    raise Ended(number)


if __name__ == "__main__":
    for one in SIGNALS:
        signal.signal(one, end)
    try:
        sys.exit(main())
    except Ended as ended:
        sys.exit(128 + ended.args[0])
    except BrokenPipeError:  # whoever read the figures has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(141)
