"""How soon a job runs: after its submission, and after an eviction on another machine.

submitted: from the call of a connected user's program to the job's first own instruction, on
an idle machine. evicted: from when the evicted process is gone, and from the owner's return,
until the next attempt's first instruction on the other, idle machine. The job has nothing to
save. The limit is one vfork, exec and wait of /bin/true."""

import time

import harness
import measure


def run(report, quick):
    spawn = 1 / measure.rate(measure.limits("spawn", 200 if quick else 1000, 1))
    submitted(report, 3 if quick else 200, spawn)
    evicted(report, 2 if quick else 60, spawn)


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
        with measure.Caller(pool) as caller:
            caller.ask("submit", told.program, told.path, "leave")
            _, pid = told.hear("start")
            for _ in range(rounds):
                pool.wait_machines(1)
                host = next(client for client in clients if client.attempts())
                returned = time.monotonic()
                host.owner("active")
                gone = measure.until_gone(pid)
                started, pid = told.hear("start")
                from_gone.append(started - gone)
                from_return.append(started - returned)
                host.owner("away")
                harness.wait_for(lambda: not host.attempts(), "the attempt to be forgotten")
        told.close()
    report.add_delays("evicted_to_running", from_gone, (spawn, spawn))
    report.add_delays("owner_to_running_elsewhere", from_return, (spawn, spawn))
