"""How soon one user's single jobs are done while others load the server.

One workstation with one slot runs the jobs, one after the other. Beside them, in turn: nothing;
240 connections that wait for changes; questions for why a job waits, in 8 threads; jobs appended
to batches that are never committed; batches of 1,000,000 different jobs, committed and removed;
batches of 100,000 jobs, each of which waits for the one before, or for one of another batch;
counts, and lists, of 1,000,000 finished jobs in 8 threads; sixteen of seventeen workstations that
do not answer; a thousand machines that join at once. As root the other user is `nobody`, else the
same. The budget is the design's; beside whole batches it holds for the longest delay, too. A load
of which the server refuses a call, other than to append beyond the quota, is none: the benchmark
fails."""

import contextlib
import json
import os
import subprocess
import time

import harness
import latency
import measure

BUDGET = 0.05  # s, p99
COMMIT_SECONDS = 60  # in which a batch is committed and removed
PARTS = ["alone", "watch", "why", "append", "commit", "chain", "follow", "count", "list", "stopped",
         "join"]
OF_FINISHED = ["count", "list"]  # in one pool: the jobs take a minute or two
THREADS = {"append": 1, "commit": 1, "chain": 1, "follow": 1}
DEPENDENT_JOBS = 100_000
WHOLE_BATCHES = ["commit", "chain", "follow"]  # no delay at all may be beyond the budget
SETS = ["log.level=warning", "server.max_connections_per_user=300"]


def run(report, quick, only=PARTS):
    missed = []
    for part, delays in delays_beside(report, quick, only):
        report.add_spread(part, delays, budget=1000 * BUDGET)
        worst = max(delays) if part in WHOLE_BATCHES else measure.percentile(delays, 99)
        if worst > BUDGET and not quick:
            missed.append(part)
    if missed:
        raise measure.Missed("beyond the budget: " + ", ".join(missed))


def delays_beside(report, quick, only):
    """Yields each part and the delays measured beside its load."""
    seconds, jobs = (0.5, 1000) if quick else (10, 1_000_000)
    threads = dict(THREADS, watch=10 if quick else 240)
    asked = [part for part in PARTS if part in only]
    for part in [part for part in asked if part not in OF_FINISHED + ["stopped", "join"]]:
        with one_workstation() as (pool, caller):
            span = COMMIT_SECONDS if part == "commit" and not quick else seconds
            of_each = min(jobs, DEPENDENT_JOBS) if part in ("chain", "follow") else jobs
            yield part, beside_user(report, pool, caller, part, threads, of_each, span)
    if set(OF_FINISHED) & set(asked):
        with one_workstation() as (pool, caller):
            with neighbour(pool, "finish", 1, jobs):
                pass
            for part in [part for part in OF_FINISHED if part in asked]:
                yield part, beside_user(report, pool, caller, part, threads, jobs, seconds)
    if "stopped" in asked:
        yield "stopped", beside_stopped(seconds)
    if "join" in asked:
        yield "join", beside_joins(seconds, quick)


@contextlib.contextmanager
def one_workstation():
    with harness.Pool(SETS) as pool:
        pool.start_server()
        pool.client("curly").start()
        pool.wait_machines(1)
        with measure.Caller(pool) as caller:
            caller.ask("through", 0.2)
            yield pool, caller


def beside_user(report, pool, caller, load, threads, jobs, seconds):
    if load == "alone":
        return caller.ask("through", seconds)["delays"]
    with neighbour(pool, load, threads.get(load, 8), jobs) as other:
        before = time.monotonic()
        delays = caller.ask("through", seconds)["delays"]
        took = time.monotonic() - before
    if (other["calls"] == 0 and load != "commit") or (other["refused"] > 0 and load != "append"):
        raise measure.Unmeasurable("beside %s: %d calls, %d refused" %
                                   (load, other["calls"], other["refused"]))
    report.add(load + "_calls", other["calls"] / took, "calls/s")
    return delays


@contextlib.contextmanager
def neighbour(pool, load, threads, jobs):
    """Yields a dictionary that has the numbers of calls afterwards."""
    folder = os.path.join(pool.folder, "links-" + load)
    os.makedirs(folder)
    os.chmod(folder, 0o777)
    user = harness.AS_NOBODY if os.geteuid() == 0 else []
    process = subprocess.Popen(
        user + [pool.public(measure.program("neighbour")), pool.socket, folder, load, str(threads),
                str(jobs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    told = {}
    try:
        said(process)
        yield told
        process.stdin.close()
        told.update(said(process))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def said(process):
    line = process.stdout.readline()
    if not line:
        raise measure.Unmeasurable("bench-neighbour ended early")
    return json.loads(line)


# An order to each of them is under way meanwhile.
def beside_stopped(seconds):
    with harness.Pool(SETS) as pool:
        pool.start_server()
        deaf = [pool.client("deaf%d" % number).start() for number in range(latency.STOPPED)]
        pool.client("curly").start()
        pool.wait_machines(latency.STOPPED + 1)
        with measure.Caller(pool) as caller, latency.stopped(deaf):
            caller.ask("array", latency.STOPPED + 1)
            harness.wait_for(lambda: latency.held_up(caller, 1), "orders without an answer")
            return caller.ask("through", min(seconds, latency.HELD_UP))["delays"]


def beside_joins(seconds, quick):
    with one_workstation() as (pool, caller):
        links = os.path.join(pool.folder, "m")
        os.makedirs(links)
        machines = subprocess.Popen(
            [measure.program("machines"), pool.socket, links, str(10 if quick else 1000), "1"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            return caller.ask("through", seconds)["delays"]
        finally:
            machines.kill()
            machines.wait()
            machines.stdin.close()
