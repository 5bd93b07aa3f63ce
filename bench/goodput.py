"""Work lost by a job of eight hours that is interrupted every two hours on average, in simulated
time: exponential times, the same ones for each way of saving, many runs. Each interruption is the
worst one: as when the machine loses its power, what was done since the last periodic save is lost.
(An eviction lets the program save, and then nothing is.) The time between saves is the product's own
(python/sublet/_interval.py, which a test compares with C's).

lost_NAME: in percent of the work; NAME is what a save takes, or how often it is made. saves_NAME: the
part of the run that saves take."""

import os
import random
import sys

import harness
import measure

sys.path.insert(0, os.path.join(harness.ROOT, "python"))
from sublet._interval import Costs, next_save_ms  # noqa: E402

WORK_S = 8 * 3600
MEAN_S = 2 * 3600
MOST_LOST, MOST_LOST_FILES, MOST_SAVING = 1.0, 3.0, 1.0  # percent
# What a save takes: that of 20 kB, of 50 MB, of 1 GB on a slow disk.
COSTS = [("2ms", 0.002), ("100ms", 0.1), ("5s", 5.0)]
PERIODS = [("every_5min", 300), ("hourly", 3600)]


def chosen(cost_s):
    """The time until the next save, as a program chooses it: a function of one attempt."""
    def attempt():
        costs, spent = Costs(), [0.0]

        def period(elapsed_s):
            return next_save_ms(costs, int(elapsed_s * 1000), MEAN_S) / 1000

        def saved():
            costs.add(int(cost_s * 1e6), True)
            spent[0] += cost_s
        return period, saved
    return attempt


def fixed(period_s):
    return lambda: (lambda _elapsed: period_s, lambda: None)


def job(pick, attempt, cost_s):
    """(work lost, time of saves) of one job, in seconds."""
    kept = lost = saving = 0.0
    while kept < WORK_S:
        period, saved = attempt()
        until = pick.expovariate(1 / MEAN_S)
        clock = done = safe = 0.0
        while True:
            step = min(period(clock), WORK_S - kept - done)
            if clock + step + cost_s > until:
                done += max(0.0, min(step, until - clock))
                break
            clock += step + cost_s
            done += step
            safe = done
            saved()
            saving += cost_s
            if kept + done >= WORK_S:
                break
        if kept + done >= WORK_S:
            safe = done
        kept += safe
        lost += done - safe
    return lost, saving


def percent(attempt, cost_s, runs):
    pick = random.Random(20261128)
    lost = saving = 0.0
    for _ in range(runs):
        one = job(pick, attempt, cost_s)
        lost += one[0]
        saving += one[1]
    work = runs * WORK_S
    return 100 * lost / work, 100 * saving / (work + lost + saving)


def run(report, quick):
    missed, runs = [], 20 if quick else 2000

    def tell(metric, value, budget=None):
        report.add(metric, value, "%", budget=budget)
        if budget is not None and value > budget:
            missed.append(metric)
    for name, cost_s in COSTS:
        lost, saving = percent(chosen(cost_s), cost_s, runs)
        # A save of seconds is paid for by work at risk: at most 1 % of the run is spent on it.
        tell("lost_" + name, lost, MOST_LOST if cost_s < 1 else None)
        tell("saves_" + name, saving, MOST_SAVING)
    for name, period_s in PERIODS:
        tell("lost_" + name, percent(fixed(period_s), 0.1, runs)[0],
             MOST_LOST_FILES if period_s < 3600 else None)
    if missed and not quick:
        raise measure.Missed("beyond the budget: " + ", ".join(missed))
