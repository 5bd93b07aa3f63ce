"""How soon a job runs: after its submission, and after an eviction on another machine.

submitted: from the call of a connected user's program to the job's first own instruction, on
an idle machine. evicted: from when the evicted process is gone, and from the owner's return,
until the next attempt's first instruction on the other, idle machine. The job has nothing to
save. beside_stopped: as submitted, while orders to sixteen workstations that do not answer
are under way. The limit is one vfork, exec and wait of /bin/true."""

import contextlib
import signal
import time

import harness
import measure


def run(report, quick):
    spawn = 1 / measure.rate(measure.limits("spawn", 200 if quick else 1000, 1))
    submitted(report, 3 if quick else 200, spawn)
    evicted(report, 2 if quick else 60, spawn)
    beside_stopped(report, 1 if quick else 8, spawn)


def submitted(report, rounds, spawn):
    delays, answers = [], []
    with harness.Pool() as pool:
        pool.start_server()
        pool.client("curly").start()
        pool.wait_machines(1)
        told = measure.Told(pool)
        with measure.Caller(pool) as caller:
            for done in range(rounds):
                asked = caller.ask("submit", told.program, told.path, "end")
                started, _ = told.hear("start")
                delays.append(started - asked["asked"])
                answers.append(asked["answered"] - asked["asked"])
                caller.await_done(done + 1)
        told.close()
    report.add_delays("submit_to_running", delays, (spawn, spawn))
    report.add_delays("submit_to_answer", answers)


def evicted(report, rounds, spawn):
    from_gone, from_return = [], []
    with harness.Pool() as pool:
        pool.start_server()
        clients = [pool.client(name).start() for name in ("curly", "moe")]
        pool.wait_machines(2)
        told = measure.Told(pool)
        tenants = measure.Tenants(pool, told, "leave")
        for _ in range(rounds):
            pool.wait_machines(2)
            pid = tenants.start()
            host = next(client for client in clients if client.attempts())
            returned = time.monotonic()
            host.owner("active")
            gone = measure.until_gone(pid)
            started, _ = told.hear("start")
            from_gone.append(started - gone)
            from_return.append(started - returned)
            host.owner("away")
            tenants.end()
            harness.wait_for(lambda: not any(client.attempts() for client in clients),
                             "the attempts to be forgotten")
        told.close()
    report.add_delays("evicted_to_running", from_gone, (spawn, spawn))
    report.add_delays("owner_to_running_elsewhere", from_return, (spawn, spawn))


STOPPED = 16
HELD_UP = 3  # seconds; less than the time limit of a call to a workstation


def beside_stopped(report, rounds, spawn):
    delays = []
    with harness.Pool() as pool:
        pool.start_server()
        deaf = [pool.client("deaf%d" % number).start() for number in range(STOPPED)]
        pool.wait_machines(STOPPED)
        pool.client("curly").start()
        pool.wait_machines(STOPPED + 1)
        told = measure.Told(pool)
        with measure.Caller(pool) as caller:
            for _ in range(rounds):
                done = caller.ask("count")["done"]
                with stopped(deaf):
                    # The one that curly gets is done; the others are on their way.
                    caller.ask("array", STOPPED + 1)
                    harness.wait_for(lambda: held_up(caller, done + 1), "orders without an answer")
                    end = time.monotonic() + HELD_UP
                    while time.monotonic() < end:
                        asked = caller.ask("submit", told.program, told.path, "end")
                        started, _ = told.hear("start")
                        delays.append(started - asked["asked"])
                        done += 1
                        caller.await_done(done + 1)
                caller.await_done(done + 1 + STOPPED)
                pool.wait_machines(STOPPED + 1)
        told.close()
    report.add_delays("submit_to_running_beside_stopped", delays, (spawn, spawn))


@contextlib.contextmanager
def stopped(clients):
    for client in clients:
        harness.kill(client.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for client in clients:
            harness.kill(client.process.pid, signal.SIGCONT)


def held_up(caller, done):
    counts = caller.ask("count")
    return counts["done"] == done and counts["placed"] == STOPPED and not counts["waiting"]
