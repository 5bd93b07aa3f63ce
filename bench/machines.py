"""A pool of 100, 1,000 and 10,000 registered machines at rest, over Unix sockets.

Each has its own connection, has passed its callback reference and renews its lease every
10 s. Ten processes with the ORB (bench-machines) play them. Measured
are the server's private memory per machine, its CPU use and threads, and how long a renewal
(durable) and a ping take. The limit of a renewal is SQLite's commit of one row, at p99 that of
the same run. With 10,000 machines the design's budgets are asserted: 40 kB of memory each, no
thread for each connection, a renewal's p99 at most 2 ms beyond the bare commit's."""

import json
import os
import subprocess
import time

import harness
import measure

PROCESSES = 10
KB_EACH = 40
THREADS = 1000
MS_OVER_COMMIT = 2


def run(report, quick):
    for count in (10,) if quick else (100, 1000, 10_000):
        sets = ["server.max_connections=%d" % (count + 1000), "log.level=warning"]
        with harness.Pool(sets) as pool:
            commit = measure.limits("commit", os.path.join(pool.folder, "bare.db"), 1, 300)
            pool.start_server()
            idle_pool(report, pool, count, 2 if quick else 20, commit, count >= 10_000)


def idle_pool(report, pool, count, seconds, commit, budgets):
    server = harness.children(pool.supervisor.pid)
    memory = measure.private_bytes(server)
    links = os.path.join(pool.folder, "m")
    os.makedirs(links)
    with Players(pool, links, count, PROCESSES if count >= 100 else 1) as players:
        joined = max(answer["joined_seconds"] for answer in players.answers())
        cpu, began = measure.cpu_seconds_in_all(server), time.monotonic()
        calls = players.measure(seconds)
        cpu = (measure.cpu_seconds_in_all(server) - cpu) / (time.monotonic() - began)
        grown = measure.private_bytes(server) - memory
        threads = sum(len(measure.tasks(pid)) for pid in server)
    name = "_%d_machines" % count
    one = 1 / measure.rate(commit)
    worst = 1000 * measure.percentile(calls["renewals"], 99)
    most = 1000 * commit["p99"] + MS_OVER_COMMIT
    report.add("joins" + name, count / joined, "machines/s", 1 / one)
    report.add("memory_each" + name, grown / count / 1e3, "kB", budget=KB_EACH if budgets else None)
    report.add("threads" + name, threads, "threads", budget=THREADS if budgets else None)
    report.add("cpu" + name, 100 * cpu, "% of a core")
    report.add("renewal_p50" + name, 1000 * measure.percentile(calls["renewals"], 50), "ms",
               1000 * one)
    report.add("renewal_p99" + name, worst, "ms", 1000 * commit["p99"],
               budget=most if budgets else None)
    report.add("ping_p50" + name, 1000 * measure.percentile(calls["pings"], 50), "ms")
    report.add("ping_p99" + name, 1000 * measure.percentile(calls["pings"], 99), "ms")
    if budgets:
        measured = [("memory_each", grown / count / 1e3, KB_EACH), ("threads", threads, THREADS),
                    ("renewal_p99", worst, most)]
        missed = [metric for metric, value, budget in measured if value > budget]
        if missed:
            raise measure.Missed("beyond the budget: " + ", ".join(missed))


class Players:
    """The processes that play the machines. A context manager."""

    def __init__(self, pool, links, count, processes):
        self.processes = []
        for first in range(0, count, count // processes):
            words = [pool.socket, links, first, count // processes]
            self.processes.append(subprocess.Popen(
                [measure.program("machines")] + [str(word) for word in words],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
            process.stdin.close()
            process.stdout.close()

    def answers(self):
        lines = [process.stdout.readline() for process in self.processes]
        if not all(lines):
            raise measure.Unmeasurable("bench-machines ended early")
        return [json.loads(line) for line in lines]

    def measure(self, seconds):
        """How long the calls take, of all machines together."""
        for process in self.processes:
            process.stdin.write("%d\n" % seconds)
        answers = self.answers()
        return {kind: [delay for answer in answers for delay in answer[kind]]
                for kind in ("renewals", "pings")}
