"""Durable submission: 1, 100 and 1,000 jobs per call, and an array of a million.

Identical adjacent jobs of a batch, as in a list of commands, are stored as one row; two
alternating kinds of jobs are not.

The limits are SQLite's own, as durable as the server's: transactions of one row of about
the same size for single jobs and the array, of 1,000 rows for the others."""

import os

import harness
import measure


def run(report, quick):
    with harness.Pool() as pool:
        one, many = bare_commits(pool, quick)
        report.add("bare_commits", one, "commits/s")
        report.add("bare_rows_1000_a_commit", many, "rows/s")
        pool.start_server()
        with measure.Caller(pool) as caller:
            singles(report, caller, 20 if quick else 3000, one)
            batches(report, caller, 10 if quick else 1, many)
            array(report, caller, 1000 if quick else 1_000_000, one)


def bare_commits(pool, quick):
    path = os.path.join(pool.folder, "bare.db")
    one = measure.rate(measure.limits("commit", path, 1, 20 if quick else 3000))
    return one, measure.rate(measure.limits("commit", path, 1000, 2 if quick else 200))


def singles(report, caller, count, limit):
    for callers in (1, 8):
        took = caller.ask("singles", count, callers)
        report.add("singles_%d_callers" % callers, count / took["seconds"], "jobs/s", limit)
        report.add("single_%d_callers_p50" % callers, 1000 * took["p50"], "ms", 1000 / limit)
        report.add("single_%d_callers_p99" % callers, 1000 * took["p99"], "ms", 1000 / limit)


def batches(report, caller, divisor, limit):
    for name, per_call, count, kinds in (("batch_100_a_call", 100, 20_000, 1),
                                         ("batch_1000_a_call", 1000, 200_000, 1),
                                         ("two_kinds_1000_a_call", 1000, 200_000, 2)):
        took = caller.ask("batch", count // divisor, per_call, kinds)
        report.add(name, count // divisor / took["seconds"], "jobs/s", limit)


def array(report, caller, count, limit):
    took = caller.ask("array", count)
    report.add("array_of_%d" % count, took["seconds"], "s", 1 / limit)
