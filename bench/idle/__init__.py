"""What the daemons use at rest: CPU, wake-ups, private memory, without jobs.

The monitor samples the real machine twice a second. Then the same for a workstation whose owner
moves the mouse all the time, 1,000 events a second: each comes from an input device, played by a
FIFO, and to the owner's X server (Xvfb), which sublet-agent watches. `mouse_events` is the rate
that was reached. And what a slot's attempt holds in memory while its job only waits (slots.py).

--only NAME: only `daemons`, `mouse` or `slots`."""

import contextlib
import os
import subprocess
import sys
import time

import harness
import measure

from idle import slots

sys.path.insert(0, os.path.join(harness.ROOT, "test", "desktops"))
import desktop  # noqa: E402

EVENT = bytes(24)  # struct input_event
RATE = 1000  # events a second
PARTS = ["daemons", "mouse", "slots"]


def run(report, quick, only=None):
    parts = only or PARTS
    with harness.Pool() as pool:
        pool.start_server()
        if "daemons" in parts:
            alone(report, pool, 12 if quick else 30)
        if "mouse" in parts:
            with Cleanups() as cleanups:
                beside_a_mouse(report, pool, cleanups, 2 if quick else 20)
    if "slots" in parts:
        slots.run(report, quick)


def alone(report, pool, lasts):
    client = pool.client("curly", scripted=False).start()
    pool.wait_machines(1, "busy")
    daemons = measure.Daemons(pool, client)
    groups = {"monitor": daemons.monitor, "client": daemons.client,
              "workstation": daemons.monitor + daemons.client, "server": daemons.server}
    # A start is over after 5 s; longer than the time between two renewals of the lease.
    watch(report, groups, time.sleep, 6, lasts)
    for name, pids in groups.items():
        report.add(name + "_private_memory", measure.private_bytes(pids) / 1e6, "MB")
    client.stop()


class Cleanups(contextlib.ExitStack):
    """As desktop.Session wants it."""
    addCleanup = contextlib.ExitStack.callback


def watch(report, groups, live, settles, lasts, prefix=""):
    """What each group of processes uses while live(seconds) plays the owner."""
    live(settles)
    before = {name: use(pids) for name, pids in groups.items()}
    began = time.monotonic()
    live(lasts)
    seconds = time.monotonic() - began
    for name, pids in groups.items():
        cpu, woken = (now - then for now, then in zip(use(pids), before[name]))
        report.add(prefix + name + "_cpu", 100 * cpu / seconds, "% of a core")
        report.add(prefix + name + "_wakeups", woken / seconds, "/s")


def use(pids):
    return measure.cpu_seconds(pids), measure.wakeups(pids)


def beside_a_mouse(report, pool, cleanups, lasts):
    if desktop.missing("Xvfb"):
        raise measure.Unmeasurable("Xvfb is not installed")
    device = Device(pool.folder)
    cleanups.callback(device.close)
    client = pool.client("moe", scripted=False, monitor_sets=["root=" + device.root]).start()
    cleanups.callback(client.stop)
    session = desktop.Session(cleanups)
    session.start_x()
    pointer = desktop.Owner(session, "xtest_input")
    agent = session.run(os.path.join(harness.BIN, "sublet-agent"), "--state", client.state,
                        stderr=subprocess.DEVNULL)
    harness.wait_for(lambda: " is watched " in pool.log("client-moe"), "the agent to be known")
    # Not earlier: while it starts, its parent's copy looks like it.
    monitor = client.monitor_pids()
    rates = []

    def move(seconds):
        began = time.monotonic()
        for n in range(1, seconds * RATE + 1):
            device.move()
            pointer.do("motion")
            time.sleep(max(0, began + n / RATE - time.monotonic()))
        rates.append(n / (time.monotonic() - began))

    groups = {"agent": [agent.pid], "workstation": monitor + [client.process.pid],
              "all": monitor + [client.process.pid, agent.pid]}
    watch(report, groups, move, 1, lasts, "mouse_")
    report.add("mouse_events", rates[-1], "/s")
    report.add("agent_private_memory", measure.private_bytes([agent.pid]) / 1e6, "MB")


class Device:
    """A mouse in a folder that is to the monitor what / is otherwise."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "root")
        os.makedirs(self.root + "/dev/input")
        os.symlink("/proc", self.root + "/proc")
        path = self.root + "/dev/input/event0"
        os.mkfifo(path)
        self.fifo = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def move(self):
        with contextlib.suppress(BlockingIOError):  # full: a device drops what nobody reads
            os.write(self.fifo, EVENT)

    def close(self):
        os.close(self.fifo)
