"""One decision of the brain in a large pool, under every policy.

A million jobs wait, none of which fits any of 10,000 idle machines; then one machine reports
enough memory for one job (bench/decide.cc). Also: a submission that fits nothing, one that fits every
machine, the sentence of `why`, and the tick at which usage decays. A figure is the 99th
percentile."""

import measure

POLICIES = ["fair-share", "fair-share-1998", "up-down", "fifo", "round-robin", "random", "umol"]
# Its budget in microseconds. A tick is the committer's longest piece of work.
METRICS = {"decision": 100, "misfit": 100, "choice": 200, "why": 1000, "tick": 50_000}


def run(report, quick):
    queued, machines, decisions = (1000, 10, 20) if quick else (1_000_000, 10_000, 2000)
    missed = []
    for policy in POLICIES:
        for users in (10,) if quick else (10, 1000, 10_000):
            for groups in (1, 4) if quick else (1, 32):
                took = measure.run_program("decide", policy, queued, machines, users, groups,
                                           decisions)
                for metric, budget in METRICS.items():
                    name = "%s_%d_users_%d_groups_%s" % (policy, users, groups, metric)
                    value = took[metric + "_us"]["p99"]
                    report.add(name, value, "us", budget=budget)
                    if value > budget and not quick:
                        missed.append(name)
    if missed:
        raise measure.Missed("beyond the budget: " + ", ".join(missed))
