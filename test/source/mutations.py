#!/usr/bin/env python3
"""Mutation testing: changes one line at a time and looks for a test that fails.

The seed orders all lines inside functions of six rooms and selects an operator for each. Each
mutant is built in a copy of the tree and tested: first unit tests of its room, then daemon
tests that exercise the room, then the rest of `./check release`. A mutant is caught when a
test fails twice in a row; one that does not compile is replaced by the next.

The folder holds the copy, its build and state.json, which is written after each step;
--resume continues an interrupted run. The result is a Markdown table.

equivalent_mutants.txt lists mutants that behave like the original, with the reason.
Exit status: 0 finished, 1 no test passes without a mutant, 2 usage error or failed build."""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import mutants

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EQUIVALENTS = os.path.join(HERE, "equivalent_mutants.txt")
# Daemon tests that exercise a room most; they run before the others.
DAEMON_TESTS = {
    "server": "command crash_steps spool report logs bad_input membership json_shapes",
    "client": "one_job owner_matrix outputs cut_off service isolation low_disk logs",
    "scheduling": "command one_job crash_steps report code_breaking",
    "protocol": "one_job owner_matrix cut_off busy_owner",
    "transport": "membership hostile forged transfer namespaces",
    "attempt": "one_job owner_matrix isolation busy_owner low_disk",
}
CAUGHT, MISSED, EQUIVALENT, BROKEN = "caught", "not caught", "equivalent", "does not compile"

Test = collections.namedtuple("Test", "name command folder environment timeout alone skip_code "
                              "labels")


class Unusable(Exception):
    """The run cannot start or continue; the text says why."""


def read_tests(listing):
    """Tests listed by ctest --show-only=json-v1, except `source` and `long` ones."""
    tests = []
    for entry in json.loads(listing)["tests"]:
        of = {one["name"]: one["value"] for one in entry.get("properties", [])}
        if "command" in entry and not {"source", "long"} & set(of.get("LABELS", [])):
            tests.append(Test(entry["name"], entry["command"], of.get("WORKING_DIRECTORY", "."),
                              dict(one.split("=", 1) for one in of.get("ENVIRONMENT", [])),
                              of.get("TIMEOUT", 600), of.get("RUN_SERIAL", False),
                              of.get("SKIP_RETURN_CODE"), of.get("LABELS", [])))
    return tests


def ordered(tests, mutant, changed, seconds):
    """Sorts tests so that the most likely to fail come first. `changed`: programs that differ
    from the original; unit tests of unchanged programs come last, except those beside the
    mutant, which may start a program that has changed. `seconds`: of each test."""
    room = mutant.path.split("/")[0]
    likely = ["daemon." + name for name in DAEMON_TESTS.get(room, "").split()]

    def rank(test):
        folder = test.folder.rsplit("/build/", 1)[-1]
        if "unit" in test.labels:
            beside = mutant.path.startswith(folder + "/")
            if test.command[0] in changed:
                return (0, -len(folder)) if beside else (1, 0)
            return (1, 1) if beside else (4, 0)
        if test.name in likely:
            return (2, likely.index(test.name))
        return (2, -1) if folder.split("/")[0] == room else (3, 0)
    return sorted(tests, key=lambda test: rank(test) + (seconds.get(test.name, 0),))


class Workshop:
    """A copy of the tree with its own build folder."""

    def __init__(self, folder, root, jobs, targets, chosen):
        self.folder = folder
        self.root = root
        self.jobs = jobs
        self.targets = targets
        self.chosen = chosen
        self.tree = os.path.join(folder, "tree")
        self.build = os.path.join(self.tree, "build")

    def sources(self):
        """All files of the tree except builds, by relative path."""
        names = []
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(one for one in folders
                                if not one.startswith((".git", "build", "__pycache__")))
            names += [os.path.relpath(os.path.join(folder, one), self.root)
                      for one in sorted(files)]
        return names

    def digest(self):
        whole = hashlib.sha256()
        for name in self.sources():
            with open(os.path.join(self.root, name), "rb") as f:
                whole.update(name.encode() + b"\0" + hashlib.sha256(f.read()).digest())
        return whole.hexdigest()

    def refresh(self):
        """Updates the copy. Files that are already equal keep their modification time."""
        for name in self.sources():
            source, copy = os.path.join(self.root, name), os.path.join(self.tree, name)
            with open(source, "rb") as f:
                content = f.read()
            if os.path.exists(copy):
                with open(copy, "rb") as f:
                    if f.read() == content:
                        continue
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(source, copy)
            shutil.copymode(source, copy)

    def environment(self, more=()):
        return dict(os.environ, CCACHE_BASEDIR=self.tree, CCACHE_NOHASHDIR="1",
                    SUBLET_MUTATIONS=self.folder, **dict(more))

    def make(self):
        """Builds; returns the output on failure, else None."""
        done = subprocess.run(["ninja", "-C", self.build, "-j", str(self.jobs)] + self.targets,
                              capture_output=True, text=True, env=self.environment())
        return done.stdout + done.stderr if done.returncode else None

    def prepare(self):
        os.makedirs(self.tree, exist_ok=True)
        self.refresh()
        done = subprocess.run(["cmake", "--preset", "release"], cwd=self.tree,
                              capture_output=True, text=True, env=self.environment())
        output = done.stdout + done.stderr if done.returncode else self.make()
        if output:
            raise Unusable("the unchanged tree does not build:\n" + output[-3000:])
        listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.build, check=True,
                                 capture_output=True, text=True).stdout
        return [test for test in read_tests(listing) if re.search(self.chosen, test.name)]

    def programs(self):
        """Returns path -> hash of all built programs."""
        found = {}
        for place in ("bin", "unit"):
            folder = os.path.join(self.build, place)
            for name in os.listdir(folder) if os.path.isdir(folder) else ():
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as f:
                        found[path] = hashlib.sha256(f.read()).hexdigest()
        return found

    def run(self, test, limit):
        """Runs a test; returns (passed, seconds)."""
        began = time.monotonic()
        process = subprocess.Popen(test.command, cwd=test.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=self.environment(test.environment), start_new_session=True)
        try:
            status = process.wait(min(limit, test.timeout))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        return status == 0 or status == test.skip_code, time.monotonic() - began

    def sweep(self):
        """Kills processes that a failed test left behind: those that run a program of this copy
        or have its environment."""
        mark = ("SUBLET_MUTATIONS=%s\0" % self.folder).encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                program = os.readlink("/proc/%s/exe" % pid)
                with open("/proc/%s/environ" % pid, "rb") as f:
                    ours = program.startswith(self.build + "/") or mark in f.read()
                if ours and int(pid) != os.getpid():
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass

    def first_failure(self, tests, seconds, until):
        """Name of the first test that fails twice; None if none does, "time" after `until`."""
        for results in self.run_all(tests, lambda test: limit_of(test, seconds)):
            for test, passed, _ in results:
                if not passed and not self.run(test, limit_of(test, seconds))[0]:
                    self.sweep()
                    return test.name
            if time.monotonic() > until:
                return "time"
        return None

    def run_all(self, tests, limit):
        """Runs as many tests at a time as jobs are allowed; yields [(test, passed, seconds)].
        Unit tests do not wait for daemon tests, which may hang with a mutant."""
        waiting = list(tests)
        while waiting:
            together = [waiting.pop(0)]
            while waiting and len(together) < self.jobs and not (
                    together[0].alone or waiting[0].alone) and (
                        "unit" in together[0].labels) == ("unit" in waiting[0].labels):
                together.append(waiting.pop(0))
            with concurrent.futures.ThreadPoolExecutor(len(together)) as pool:
                results = list(pool.map(lambda test: self.run(test, limit(test)), together))
            if not all(passed for passed, _ in results):
                self.sweep()
            yield [(test,) + result for test, result in zip(together, results)]


def limit_of(test, seconds):
    return 60 + 5 * seconds.get(test.name, test.timeout)


class Run:
    def __init__(self, workshop, options):
        self.workshop = workshop
        self.options = options
        self.path = os.path.join(workshop.folder, "state.json")
        self.state = {"seed": options.seed, "digest": workshop.digest(), "tests": options.tests,
                      "seconds": {}, "failing": [], "results": {}}

    def read(self):
        with open(self.path) as f:
            return json.load(f)

    def load(self):
        if not os.path.exists(self.path):
            return
        if not self.options.resume:
            raise Unusable("%s exists: use --resume or another --folder" % self.path)
        before = self.read()
        for what in ("seed", "digest", "tests"):
            if before[what] != self.state[what]:
                raise Unusable("%s belongs to a different %s" % (
                    self.path, {"digest": "tree", "tests": "--tests"}.get(what, what)))
        self.state = before

    def save(self):
        with open(self.path + ".new", "w") as f:
            json.dump(self.state, f, indent=1)
        os.rename(self.path + ".new", self.path)

    def measure(self, tests):
        """Times each test without a mutant; drops and reports tests that fail."""
        known = set(self.state["seconds"]) | set(self.state["failing"])
        missing = [test for test in tests if test.name not in known]
        for results in self.workshop.run_all(missing, lambda test: test.timeout):
            for test, passed, taken in results:
                if passed:
                    self.state["seconds"][test.name] = taken
                else:
                    print("fails without a mutant: " + test.name, flush=True)
                    self.state["failing"].append(test.name)
            self.save()
        return [test for test in tests if test.name not in self.state["failing"]]

    def again(self):
        """Mutants of an earlier tree whose lines still exist."""
        with open(self.options.again, encoding="utf-8") as f:
            earlier = mutants.read_list(f.read())
        if not earlier:
            raise Unusable("%s lists no mutants" % self.options.again)
        for mutant in earlier:
            path = os.path.join(self.workshop.root, mutant.path)
            found = None
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    found = mutants.moved(mutant, f.read())
            if found:
                yield found
            else:
                print("gone: %s: %s" % (mutant.path, mutant.before), flush=True)

    def picks(self):
        if self.options.again:
            return self.again()
        files = {}
        for name in self.workshop.sources():
            if mutants.eligible(name, self.options.rooms):
                with open(os.path.join(self.workshop.root, name), encoding="utf-8") as f:
                    files[name] = f.read()
        return mutants.pick(files, self.options.seed, self.options.rooms)

    def go(self):
        """Tests mutants until --count of them have a result."""
        os.makedirs(self.workshop.folder, exist_ok=True)
        self.load()
        self.save()
        tests = self.workshop.prepare()
        original = self.workshop.programs()
        tests = self.measure(tests)
        if not tests:
            return 1
        for number, mutant in enumerate(self.picks(), 1):
            if self.decided() >= self.options.count or \
                    self.options.only and number > self.options.only:
                break
            if str(number) in self.state["results"] or \
                    self.options.only and number != self.options.only:
                continue
            print("%d: %s:%d %s: %s" % ((number,) + mutant[:3] + (mutant.after,)), flush=True)
            began = time.monotonic()
            result, by = self.decide(mutant, tests, original)
            self.state["results"][str(number)] = dict(
                mutant._asdict(), result=result, by=by, seconds=round(time.monotonic() - began))
            print("   %s: %s" % (result, by), flush=True)
            self.save()
        print("\n".join(self.table()))
        return 0

    def decided(self):
        return sum(one["result"] != BROKEN for one in self.state["results"].values())

    def decide(self, mutant, tests, original):
        reason = equivalents().get((mutant.path, mutant.before, mutant.after))
        if reason:
            return EQUIVALENT, reason
        path = os.path.join(self.workshop.tree, mutant.path)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        try:
            with open(path, "w", encoding="utf-8") as f:
                f.write(mutants.applied(text, mutant))
            output = self.workshop.make()
            if output:
                return BROKEN, (re.findall(r"error: .*", output) or ["?"])[0]
            programs = self.workshop.programs()
            changed = {program for program in programs
                       if programs[program] != original.get(program)}
            if not changed:
                return EQUIVALENT, "compiles to the same programs"
            seconds = self.state["seconds"]
            by = self.workshop.first_failure(ordered(tests, mutant, changed, seconds), seconds,
                                             time.monotonic() + 60 * self.options.minutes)
        finally:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        if by == "time":
            return MISSED, "within %d minutes" % self.options.minutes
        return (CAUGHT, by) if by else (MISSED, "by any of %d tests" % len(tests))

    def table(self):
        results = [self.state["results"][number]
                   for number in sorted(self.state["results"], key=int)]
        counts = collections.Counter(one["result"] for one in results)
        yield "| | line | operator | before → after | |"
        yield "|---|---|---|---|---|"
        number = 0
        for one in results:
            if one["result"] != BROKEN:
                number += 1
                yield "| %d | `%s:%d` | %s | %s → %s | %s: %s |" % (
                    number, one["path"], one["line"], one["operator"], code(one["before"]),
                    code(one["after"]), one["result"], one["by"])
        yield ""
        yield ("Seed %s: %d lines, %d caught, %d not caught, %d equivalent; %d more do not "
               "compile." % (self.state["seed"], number, counts[CAUGHT], counts[MISSED],
                             counts[EQUIVALENT], counts[BROKEN]))
        if self.state["failing"]:
            yield "Excluded because they fail without a mutant: " + \
                ", ".join(self.state["failing"]) + "."
        if self.state["tests"]:
            yield "Limited to tests that match `%s`." % self.state["tests"]


def code(line):
    """A line formatted as code for a table cell."""
    return "`%s`" % line.replace("|", "\\|") if "`" not in line else line.replace("|", "\\|")


def equivalents():
    if not os.path.exists(EQUIVALENTS):
        return {}
    with open(EQUIVALENTS, encoding="utf-8") as f:
        return mutants.read_equivalents(f.read())


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    parser.add_argument("--count", type=int, default=40, help="number of mutants (default: 40)")
    parser.add_argument("--only", type=int, metavar="N", help="test only the N-th mutant")
    parser.add_argument("--list", action="store_true",
                        help="list the first --count mutants and exit")
    parser.add_argument("--table", action="store_true",
                        help="print the table of the results so far and exit")
    parser.add_argument("--again", metavar="FILE", help="test the mutants of this file, the "
                        "output of --list, instead of random ones: lines may have moved")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="parallel compilations and tests")
    parser.add_argument("--minutes", type=int, default=45,
                        help="test time limit for each mutant (default: 45)")
    parser.add_argument("--tests", default="", metavar="REGEX", help="use only tests that match")
    parser.add_argument("--targets", default="all",
                        help="build only these targets, for use with --tests")
    parser.add_argument("--rooms", default=",".join(mutants.ROOMS), help="default: %(default)s")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "mutations"),
                        help="default: build/mutations")
    parser.add_argument("--root", default=ROOT, help="source tree (default: this one)")
    options = parser.parse_args(arguments)
    options.rooms = tuple(options.rooms.split(","))
    options.folder = os.path.abspath(options.folder)
    options.root = os.path.abspath(options.root)
    return options


def main(arguments):
    options = read_options(arguments)
    run = Run(Workshop(options.folder, options.root, options.jobs, options.targets.split(","),
                       options.tests), options)
    try:
        if options.list:
            for number, mutant in zip(range(1, options.count + 1), run.picks()):
                print("%d: %s:%d %s\n  - %s\n  + %s" % ((number,) + mutant))
            return 0
        if options.table:
            run.state = run.read()
            print("\n".join(run.table()))
            return 0
        return run.go()
    except (Unusable, OSError, ValueError, subprocess.CalledProcessError) as error:
        print("mutations: %s" % error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("interrupted; --resume continues")
