"""The kinds of jobs that are evicted: bench-tenant, which says when it last ran."""

import contextlib
import os
import struct
import time
import urllib.parse

import harness
import measure

SAVER = "save"
HOSTILE = ("deaf", "fork", "allocate", "write", "many")
KINDS = (SAVER,) + HOSTILE
LOOK_SECONDS = 0.0003  # between looks at a cgroup: its notifications come late


class Tenants:
    """Runs jobs of these kinds, one at a time, each a job of its own: one that is evicted five
    times in a row at once is held."""

    STAMPS = struct.Struct("=3q")

    def __init__(self, pool, caller, client):
        self.caller = caller
        self.client = client
        self.told = measure.Told(pool)
        self.program = pool.public(measure.program("tenant"))
        self.stamps = os.path.join(pool.folder, "stamps")
        with open(self.stamps, "wb") as f:
            f.write(bytes(self.STAMPS.size))
        os.chmod(self.stamps, 0o666)

    def start(self, kind):
        """Submits a job and waits until all its processes run; returns the main one's pid."""
        self.job = self.caller.ask("submit", self.program, self.told.path, self.stamps,
                                   kind)["job"]
        # Beside other programs of this machine, hundreds of processes would never be started. The
        # job demotes itself at a moment that is not known here.
        harness.wait_for(self.started_soon, "the job's start")
        pid = self.told.hear("start")[1]
        set_idle(cgroup_of(self.client, "cpu"), True)
        return pid

    def started_soon(self):
        set_idle(cgroup_of(self.client, "cpu"), False)
        return self.told.waits(0.02)

    def end(self):
        """To be called before the owner leaves: the job would start again."""
        self.caller.ask("remove", self.job)

    def last_ran(self):
        return self.read()[0]

    def saved_since(self, event):
        """How long the save took; 0: there was none."""
        _, began, ended = self.read()
        return ended - began if ended > event else 0

    def read(self):
        with open(self.stamps, "rb") as f:
            return [ns / measure.NS for ns in self.STAMPS.unpack(f.read())]


def cgroup_of(client, hierarchy):
    """The cgroup of the client's only attempt; "": it has none."""
    records = filter(None, map(client.record, client.attempts()))
    return next((urllib.parse.unquote(record.get("cgroup_" + hierarchy, ""))
                 for record in records), "")


def set_idle(cgroup, idle):
    """Whether the job has almost no CPU weight, or else a normal one."""
    with contextlib.suppress(OSError):  # there is none, or the attempt has ended
        with open(cgroup + "/cpu.idle", "w") as f:
            f.write("%d" % idle)


def until_all_gone(pid, cgroup):
    """The instant at which the job's main process, and every other in its cgroup, was gone."""
    gone = measure.until_gone(pid)
    while is_populated(cgroup):
        time.sleep(LOOK_SECONDS)
        gone = time.monotonic()
    return gone


def is_populated(cgroup):
    try:
        with open(cgroup + "/cgroup.events") as events:
            return "populated 1\n" in events.read()
    except OSError:  # there is none, or the shepherd has removed it
        return False
