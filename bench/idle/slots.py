"""What one slot's attempt holds in memory while its job only waits, with walls and without.

`sleep` runs in many slots at once; each figure is for one of them. `private` is the memory of the
attempt's processes that no other shares: the shepherd's, that of the first process of the job's
namespace (`init`), of its fork server, if it has one, and of `sleep` itself (`job`). `shared` is
mostly the shepherd's program, which all have in common, and which is there once. `kernel` is what the kernel's own memory has grown by:
slabs that it cannot give back, stacks, page tables and per-CPU areas, so processes, namespaces,
mounts and control groups; the median of several rounds. Other load on the machine makes it wrong.
`no_network`: with a network namespace besides. `bare`: namespaces are refused, as in many
containers."""

import statistics

import harness
import measure

KERNEL = ("SUnreclaim", "KernelStack", "PageTables", "Percpu")
# Of the client's command, and of the jobs.
WAYS = {"walls": ([], []), "no_network": ([], ["--network", "none"]),
        "bare": (harness.without_calls("ipc namespace=EPERM"), [])}
POSSIBLE = list(WAYS) if harness.has_walls() else ["bare"]


def run(report, quick):
    jobs, rounds = (4, 1) if quick else (50, 5)
    for way in POSSIBLE:
        prefix, options = WAYS[way]
        with harness.Pool() as pool:
            pool.start_server()
            client = pool.client("curly", slots=jobs, prefix=prefix,
                                 extra=["--set", "weak=true"]).start()
            pool.wait_machines(1)
            inits = 0 if way == "bare" else 1
            fill(pool, client, jobs, options, inits)  # what only the first jobs cost
            measured = [fill(pool, client, jobs, options, inits) for _ in range(rounds)]
        for what in measured[0]:
            each = statistics.median(one[what] for one in measured) / jobs
            report.add("slot_%s_%s" % (way, what), each / 1e3, "kB")


def fill(pool, client, jobs, options, inits_each):
    """Runs them all at once; returns what all together hold, in bytes."""
    before = kernel_memory()
    ids = pool.submit("--count", jobs, *options, "--", "sleep", "1000")
    harness.wait_for(lambda: len(sleeping(client)) == jobs, "all jobs to run")
    held = {"kernel": kernel_memory() - before}
    records = sleeping(client)
    shepherds = [int(one["shepherd_pid"]) for one in records]
    programs = [int(one["job_pid"]) for one in records]

    def helpers(*names):
        return {pid for one in shepherds for pid in harness.children(one)
                if pid not in programs and program(pid) in names}

    def others():
        return {pid for one in shepherds for pid in harness.children(one)} - {*programs} - helpers(
            "sublet-init", "sublet-forks")
    # The process that makes a slot's namespaces may not have ended yet.
    harness.wait_for(lambda: not others() and len(helpers("sublet-init")) == inits_each * jobs,
                     "only the first processes, and fork servers, to be left")
    held["shepherd_private"] = measure.private_bytes(shepherds)
    held["shepherd_shared"] = measure.mapped_bytes(shepherds, "Shared_")
    if inits_each:
        held["init_private"] = measure.private_bytes(helpers("sublet-init"))
        # Of the slots that have one: those whose namespaces have been used before.
        servers = helpers("sublet-forks")
        held["fork_server_private"] = jobs * measure.private_bytes(servers) / max(1, len(servers))
    held["job_private"] = measure.private_bytes(programs)
    pool.sublet("rm", "%d-%d" % (ids[0], ids[-1]))
    harness.wait_for(lambda: not client.attempts(), "all jobs to be gone")
    return held


def sleeping(client):
    """The records of the attempts whose program runs."""
    records = [client.record(attempt) for attempt in client.attempts()]
    return [one for one in records if one and program(int(one["job_pid"])) == "sleep"]


def program(pid):
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().rstrip("\n")
    except FileNotFoundError:
        return ""


def kernel_memory():
    with open("/proc/meminfo") as f:
        facts = dict(line.split(":") for line in f)
    return sum(1024 * int(facts[name].split()[0]) for name in KERNEL)
