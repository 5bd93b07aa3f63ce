"""Scheduling and bookkeeping alone: the server's pipeline and store, simulated machines.

In one process, without the ORB (bench/dispatch.cc): every order, start and end passes through
the server's own services and is durable. The limit is SQLite's rows per second with 1,000 per
transaction, divided by the two rows that a job needs at least: placed, ended. The brain's
events are also measured alone (bench/brain.cc)."""

import os
import tempfile

import measure


def run(report, quick):
    for queued in (1000,) if quick else (1000, 100_000):
        took = measure.run_program("brain", queued, 100 if quick else 20_000)
        report.add("brain_events_%d_queued" % queued, took["events"] / took["seconds"],
                   "events/s")
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as folder:
        bare = measure.limits("commit", os.path.join(folder, "bare.db"), 1000, 2 if quick else 200)
        limit = measure.rate(bare) / 2
        for machines, jobs in ((5, 50),) if quick else ((100, 20_000), (1000, 50_000)):
            one_pool(report, os.path.join(folder, "%d-%d" % (machines, jobs)), machines, jobs,
                     limit)


def one_pool(report, folder, machines, jobs, limit):
    os.mkdir(folder)
    took = measure.run_program("dispatch", folder, machines, 1, jobs, min(machines, 256))
    name = "_%d_machines_%d_jobs" % (machines, jobs)
    report.add("jobs_per_second" + name, jobs / took["seconds"], "jobs/s", limit)
    report.add("cpu" + name, 1e6 * took["cpu_seconds"] / jobs, "us/job")
    report.add("submitted" + name, jobs / took["submit_seconds"], "jobs/s", 2 * limit)
