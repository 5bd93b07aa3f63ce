"""From SIGKILL of the server until it answers again, with 1 k to 1 M jobs queued.

Adjacent jobs differ: identical ones would be one row. The limit is reading every queued job's
row from the same database, with SQLite alone."""

import os
import time

import harness
import measure

BATCH = 100_000
KILLS = 5


def run(report, quick):
    for depth in (100,) if quick else (1_000, 10_000, 100_000, 1_000_000):
        one_depth(report, depth, 1 if quick else KILLS)


def one_depth(report, depth, kills):
    with harness.Pool() as pool:
        pool.start_server()
        with measure.Caller(pool) as caller:
            for sent in range(0, depth, BATCH):
                caller.ask("batch", min(BATCH, depth - sent), 1000, 2)
        took = [killed(pool) for _ in range(kills)]
        with measure.Caller(pool) as caller:
            if caller.ask("waiting")["waiting"] != depth:
                raise measure.Unmeasurable("jobs were lost")
        limit = measure.limits("rows", os.path.join(pool.state, "pool.db"), "jobs")["seconds"]
        memory = measure.private_bytes(harness.children(pool.supervisor.pid))
    report.add("restart_%d_queued" % depth, measure.percentile(took, 50), "s", limit)
    report.add("restart_%d_queued_worst" % depth, max(took), "s", limit)
    report.add("server_memory_%d_queued" % depth, memory / 1e6, "MB")


def killed(pool):
    """Starts a new supervisor for each kill: a supervisor whose server dies repeatedly waits
    longer each time, and finally gives up."""
    pool.stop_server(deadline=harness.PATIENCE)
    pool.start_server()
    with measure.Caller(pool) as caller:
        caller.begin("await-other", pool.server_pid())
        time.sleep(0.1)
        began = time.monotonic()
        pool.kill_server()
        return caller.answer()["at"] - began
