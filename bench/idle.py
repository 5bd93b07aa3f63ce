"""What the daemons use at rest: CPU, wake-ups, private memory, without jobs.

The monitor samples the real machine twice a second."""

import time

import harness
import measure


def run(report, quick):
    with harness.Pool() as pool:
        pool.start_server()
        client = pool.client("curly", scripted=False).start()
        pool.wait_machines(1, "busy")
        daemons = measure.Daemons(pool, client)
        groups = {"monitor": daemons.monitor, "client": daemons.client,
                  "workstation": daemons.monitor + daemons.client, "server": daemons.server}
        time.sleep(0.5 if quick else 5)
        before = {name: use(pids) for name, pids in groups.items()}
        began = time.monotonic()
        # Longer than the time between two renewals of the lease.
        time.sleep(12 if quick else 30)
        seconds = time.monotonic() - began
        for name, pids in groups.items():
            cpu, woken = (now - then for now, then in zip(use(pids), before[name]))
            report.add(name + "_cpu", 100 * cpu / seconds, "% of a core")
            report.add(name + "_wakeups", woken / seconds, "/s")
            report.add(name + "_private_memory", measure.private_bytes(pids) / 1e6, "MB")


def use(pids):
    return measure.cpu_seconds(pids), measure.wakeups(pids)
