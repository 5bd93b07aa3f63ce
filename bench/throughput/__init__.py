"""`true` jobs through the whole system, durable, on two slots; and rivals, not durable.

The limit is vfork, exec and wait of /bin/true, two at a time. The queue holds 1,000, 10,000
or 100,000 jobs when the workstation's owner leaves; the figure counts the jobs that leave the
queue in ten seconds, once a tenth of it, at most 1,000 jobs, has left. The cpu_ figures are the CPU time per
job, by process. Then the same with jobs that leave an output of 1 kB, need an input of 1 kB, or
save a checkpoint of 1 kB (bench-keep); their limit is that of `true`, too."""

import os
import shutil
import subprocess
import tempfile
import time

import harness
import measure

SLOTS = 2
# What the batch says of a job besides.
KINDS = {"output": 'outputs = ["output"]', "input": 'inputs = ["input"]', "checkpoint": ""}


def run(report, quick):
    spawns = 200 if quick else 6000
    limit = measure.rate(measure.limits("spawn", spawns, SLOTS))
    for name, rival in RIVALS.items():
        if shutil.which(name):
            report.add("rival_" + name, rival(spawns // 6), "jobs/s", limit)
    for depth in (200,) if quick else (1_000, 10_000, 100_000):
        through(report, "%d_queued" % depth, depth, lambda pool, caller: caller.ask(
            "batch", depth, 1000, 2), limit)
    for kind in KINDS:
        depth = 100 if quick else 10_000
        through(report, "with_" + kind, depth, lambda pool, _: submit(pool, kind, depth), limit)
    after = measure.rate(measure.limits("spawn", spawns, SLOTS))
    report.add("limit_afterwards", after, "jobs/s", limit)


# -- the system ------------------------------------------------------------------


def submit(pool, kind, jobs):
    """A batch of jobs of bench-keep."""
    program = pool.public(measure.program("keep"))
    with open(os.path.join(pool.folder, "input"), "wb") as file:
        file.write(bytes(1000))
    batch = os.path.join(pool.folder, kind + ".toml")
    with open(batch, "w") as file:
        file.write('[[job]]\nprogram = "%s"\narguments = ["%s"]\ncount = %d\n%s\n' %
                   (program, kind, jobs, KINDS[kind]))
    pool.submit(batch)


def through(report, name, depth, fill, limit):
    with harness.Pool() as pool:
        pool.start_server()
        # The client's state is hidden from its jobs, as it is wherever nobody has granted it.
        programs = os.path.dirname(pool.public(measure.program("keep")))
        client = pool.client("curly", slots=SLOTS, grants=[os.path.realpath(programs)])
        client.owner("active")
        client.start()
        pool.wait_machines(1, "busy")
        with measure.Caller(pool) as caller:
            fill(pool, caller)
            daemons = measure.Daemons(pool, client)
            client.owner("away")
            window = Window(caller, daemons, depth - min(depth // 10, 1000))
            seconds, jobs, cpu = window.watch(10)
            caller.await_done(jobs)
    report.add("jobs_per_second_" + name, jobs / seconds, "jobs/s", limit)
    for who, used in cpu.items():
        report.add("cpu_%s_%s" % (who, name), 1000 * used / jobs, "ms/job",
                   1000 * SLOTS / limit if who == "all" else None)


class Window:
    """Jobs that leave the queue, and the CPU time of all processes meanwhile."""

    def __init__(self, caller, daemons, fewer_than):
        self.caller = caller
        self.daemons = daemons
        self.first = harness.wait_for(lambda: self.sample(fewer_than), "the first jobs to leave")
        self.cpu_first = self.cpu()

    def sample(self, fewer_than):
        now = self.caller.ask("waiting")
        return now if now["waiting"] < fewer_than else None

    def cpu(self):
        used = {who: measure.cpu_seconds(getattr(self.daemons, who))
                for who in ("server", "client", "monitor")}
        used["all"] = measure.machine_cpu_seconds()
        return used

    def watch(self, seconds):
        """(seconds, jobs, CPU seconds by process): until the queue is empty, at most so long."""
        last = self.first
        while last["waiting"] > 0 and last["at"] - self.first["at"] < seconds:
            time.sleep(0.02)
            last = self.caller.ask("waiting")
        cpu_last = self.cpu()
        jobs = self.first["waiting"] - last["waiting"]
        if jobs == 0:
            raise measure.Unmeasurable("no job left the queue")
        cpu = {who: cpu_last[who] - self.cpu_first[who] for who in cpu_last}
        cpu["shepherds_and_jobs"] = cpu["all"] - sum(
            cpu[who] for who in ("server", "client", "monitor"))
        return last["at"] - self.first["at"], jobs, cpu


# -- rivals ----------------------------------------------------------------------


def timed(command, jobs, **environment):
    began = time.monotonic()
    subprocess.run(["sh", "-c", command % {"jobs": jobs, "slots": SLOTS}], check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={**os.environ, **environment})
    return jobs / (time.monotonic() - began)


def xargs(jobs):
    return timed("seq %(jobs)d | xargs -n1 -P%(slots)d true", jobs)


def parallel(jobs):
    return timed("seq %(jobs)d | parallel -j%(slots)d true", jobs)


def task_spooler(jobs):
    """Waits for the last job; by then at most one of the others still runs."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"TS_SOCKET": os.path.join(folder, "s"), "TMPDIR": folder}
        try:
            timed("tsp -S %(slots)d", 1, **own)
            return timed("for i in $(seq %(jobs)d); do tsp -n true; done; tsp -w", jobs, **own)
        finally:
            timed("tsp -K", 1, **own)


RIVALS = {"xargs": xargs, "parallel": parallel, "tsp": task_spooler}
