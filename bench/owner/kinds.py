"""The kinds of jobs that are evicted: bench-tenant, which says when it last ran."""

import os
import struct
import time
import urllib.parse

import measure

SAVER = "save"
HOSTILE = ("deaf", "fork", "allocate", "write", "many")
KINDS = (SAVER,) + HOSTILE
LOOK_SECONDS = 0.0003  # between looks at a cgroup: its notifications come late


class Tenants:
    """Runs jobs of these kinds, one at a time, each a job of its own: one that is evicted five
    times in a row at once is held."""

    STAMPS = struct.Struct("=3q")

    def __init__(self, pool, caller):
        self.caller = caller
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
        return self.told.hear("start")[1]

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


def cgroup_of(client):
    """The unified cgroup of the client's only attempt; None: it has none."""
    records = filter(None, map(client.record, client.attempts()))
    return next((urllib.parse.unquote(record["cgroup_unified"]) for record in records
                 if record.get("cgroup_unified")), None)


def until_all_gone(pid, cgroup):
    """The instant at which the job's main process, and every other in its cgroup, was gone."""
    gone = measure.until_gone(pid)
    while cgroup and is_populated(cgroup):
        time.sleep(LOOK_SECONDS)
        gone = time.monotonic()
    return gone


def is_populated(cgroup):
    try:
        with open(cgroup + "/cgroup.events") as events:
            return "populated 1\n" in events.read()
    except OSError:  # the shepherd has removed it
        return False
