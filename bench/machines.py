"""A pool of 100, 1,000 and 5,000 registered machines at rest, over Unix sockets.

Each has its own connection, has passed its callback reference and renews its lease every
10 s; one process (bench-machines) simulates them all. Measured are the server's private memory
per machine, its CPU use, and how long a renewal (durable) and a ping take. The limit of a
renewal is SQLite's commit of one row; memory has no limit."""

import json
import os
import subprocess
import time

import harness
import measure


def run(report, quick):
    for count in (10,) if quick else (100, 1000, 5000):
        sets = ["server.max_connections=%d" % (count + 1000), "log.level=warning"]
        with harness.Pool(sets) as pool:
            commit = measure.limits("commit", os.path.join(pool.folder, "bare.db"), 1, 300)
            pool.start_server()
            idle_pool(report, pool, count, 2 if quick else 20, 1 / measure.rate(commit))


def idle_pool(report, pool, count, seconds, commit):
    server = harness.children(pool.supervisor.pid)
    memory = measure.private_bytes(server)
    links = os.path.join(pool.folder, "m")
    os.makedirs(links)
    machines = subprocess.Popen(
        [measure.program("machines"), pool.socket, links, str(count), str(seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        joined = answer(machines)["joined_seconds"]
        cpu, began = measure.cpu_seconds(server), time.monotonic()
        calls = answer(machines)
        cpu = (measure.cpu_seconds(server) - cpu) / (time.monotonic() - began)
        grown = measure.private_bytes(server) - memory
    finally:
        machines.kill()
        machines.wait()
        machines.stdin.close()
        machines.stdout.close()
    name = "_%d_machines" % count
    report.add("joins" + name, count / joined, "machines/s", 1 / commit)
    report.add("memory_each" + name, grown / count / 1e3, "kB")
    report.add("cpu" + name, 100 * cpu, "% of a core")
    report.add("renewal_p50" + name, 1000 * calls["p50"], "ms", 1000 * commit)
    report.add("renewal_p99" + name, 1000 * calls["p99"], "ms", 1000 * commit)
    report.add("ping_p50" + name, 1000 * calls["ping_p50"], "ms")
    report.add("ping_p99" + name, 1000 * calls["ping_p99"], "ms")


def answer(machines):
    line = machines.stdout.readline()
    if not line:
        raise measure.Unmeasurable("bench-machines ended early")
    return json.loads(line)
