"""The owner's loops (bench-owners-loop), their windows, and what is told of them."""

import collections
import json
import os
import subprocess

import measure

CORES = sorted(os.sched_getaffinity(0))
# Most that the owner may be slowed down, where there is a budget.
BUDGET = {50: 1.01, 99: 1.05}


class Loops:
    """`count` loops of the owner's, each in a session of its own, on one of the last cores. A
    context manager."""

    def __init__(self, kind, count):
        self.processes = [
            subprocess.Popen(["taskset", "-c", str(core), measure.program("owners-loop"), kind],
                             start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for core in CORES[-count:]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def during(self, act):
        """What they answer about a window, which is as long as act() takes."""
        self.say()
        act()
        self.say()
        answers = [process.stdout.readline() for process in self.processes]
        if not all(answers):
            raise measure.Unmeasurable("a loop of the owner's has ended")
        return [json.loads(answer) for answer in answers]

    def say(self):
        for process in self.processes:
            os.write(process.stdin.fileno(), b"\n")


class Pieces:
    """The pieces of work of all windows of the same name, in seconds."""

    def __init__(self):
        self.took = collections.defaultdict(list)
        self.late = collections.defaultdict(list)

    def add(self, name, answers):
        for answer in answers:
            self.took[name] += answer["took"]
            self.late[name] += answer["late"]


def tell(report, scene, loop, found):
    """Returns the metrics that are beyond their budget."""
    missed = []
    alone, late_alone = (pieces["alone"] + pieces["control"]
                         for pieces in (found.took, found.late))
    for name in scene.NAMES:
        metric, beside = name + "_" + loop, found.took[name]
        if not beside:
            raise measure.Unmeasurable("%s: the owner's loop did not run" % metric)
        for percent, most in BUDGET.items():
            slowdown = ratio(beside, alone, percent)
            apart = ratio(found.took["control"], found.took["alone"], percent)
            control = max(apart, 1 / apart)
            budget = max(most, control) if scene.HAS_BUDGET else None
            report.add("%s_p%d" % (metric, percent), slowdown, "times", control, budget)
            if budget is not None and slowdown > budget:
                missed.append("%s_p%d" % (metric, percent))
        report.add(metric + "_max", 1000 * max(beside), "ms", 1000 * max(alone))
        if late_alone:
            report.add(metric + "_late_p99", 1000 * measure.percentile(found.late[name], 99), "ms",
                       1000 * measure.percentile(late_alone, 99))
    return missed


def ratio(some, others, percent):
    return measure.percentile(some, percent) / measure.percentile(others, percent)
