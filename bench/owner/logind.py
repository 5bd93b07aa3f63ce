"""What the owner does that logind tells of on the system's bus: a login, a program that keeps the
screen on, and sending the machine to sleep. python3-dbusmock plays logind, on a bus of its own."""

import os
import subprocess

import harness
import measure
from owner import senses
from owner.senses import desktop

PYTHON = "/usr/bin/python3"  # for which Debian's packages are

# Reads words and arguments, and answers with the instant just before the signal on the bus.
PLAYER = """
import sys, time
import dbus, dbus.bus
NAME, MANAGER = "org.freedesktop.login1", "org.freedesktop.login1.Manager"
bus = dbus.bus.BusConnection(sys.argv[1])
while not bus.name_has_owner(NAME):
    time.sleep(0.01)
manager = bus.get_object(NAME, "/org/freedesktop/login1")
mock = dbus.Interface(manager, "org.freedesktop.DBus.Mock")
mock.AddProperty(MANAGER, "BlockInhibited", "")
print("ready", flush=True)
for line in sys.stdin:
    word, argument = line.rstrip("\\n").split(" ")
    at = time.monotonic()
    if word == "delays":
        at = len(dbus.Interface(manager, MANAGER).ListInhibitors())
    elif word == "sleeps":
        mock.EmitSignal(MANAGER, "PrepareForSleep", "b", [argument == "yes"])
    elif word == "blocks":
        mock.UpdateProperties(MANAGER, {"BlockInhibited": argument})
    elif word == "add":
        path = mock.AddSession(argument, "seat0", dbus.UInt32(0), "owner", True)
    elif word == "tell":
        mock.EmitSignal(MANAGER, "SessionNew", "so", [argument, path])
    print(at, flush=True)
"""


def missing():
    """What must be installed for it, or None."""
    there = subprocess.run([PYTHON, "-c", "import dbus, dbusmock, gi"], stderr=subprocess.DEVNULL)
    return desktop.missing("dbus-daemon") or (
        "python3-dbusmock" if there.returncode != 0 else None)


class Logind:
    """A bus, logind on it, who does what logind tells, and a monitor that uses this bus."""

    def __init__(self, room):
        session = desktop.Session(room)
        bus = session.start_bus()
        address = session.environment["DBUS_SESSION_BUS_ADDRESS"]
        # The client starts the monitor with an environment of its own.
        self.monitor = os.path.join(session.folder, "monitor")
        with open(self.monitor, "w") as f:
            f.write('#!/bin/sh\nDBUS_SYSTEM_BUS_ADDRESS="%s" exec "%s" "$@"\n' %
                    (address, os.path.join(harness.BIN, "sublet-loadmon")))
        os.chmod(self.monitor, 0o755)
        logind = session.run(PYTHON, "-m", "dbusmock", "--session", "--template", "logind",
                             stdout=subprocess.DEVNULL)
        self.player = session.run(PYTHON, "-c", PLAYER, address, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, bufsize=1)
        self.hear()
        for process in bus, logind, self.player:
            senses.real_time(process.pid)

    def hear(self):
        line = self.player.stdout.readline()
        if not line:
            raise measure.Unmeasurable("logind cannot be played")
        return line

    def do(self, word, argument="-"):
        self.player.stdin.write("%s %s\n" % (word, argument))
        return float(self.hear())

    def wait_heard(self):
        """Until the monitor has asked that sleep waits for it."""
        harness.wait_for(lambda: self.do("delays") == 1, "the monitor to know logind")


class AtLogind(senses.Hand):
    REST = 0
    STOPPED_BUDGET_MS = None

    @classmethod
    def missing(cls):
        return missing()

    @classmethod
    def prepare(cls, room):
        if room.logind is None:
            room.logind = Logind(room)
            room.client_options += ["--set", "monitor.program=" + room.logind.monitor]

    def __init__(self, room, _client):
        self.logind = room.logind
        self.logind.wait_heard()


class Login(AtLogind):
    """A login, as over ssh."""

    NAME = "login"

    def __init__(self, room, client):
        super().__init__(room, client)
        self.number = 0
        self.over()

    def act(self):
        return self.logind.do("tell", "s%d" % self.number)

    def over(self):
        self.number += 1
        self.logind.do("add", "s%d" % self.number)


class ScreenKeptOn(AtLogind):
    """A program asks that the machine does not count as idle, as one does that plays a film."""

    NAME = "screen_kept_on"

    def act(self):
        return self.logind.do("blocks", "idle")

    def over(self):
        self.logind.do("blocks", "shutdown")


class Sleep(AtLogind):
    """The machine is about to sleep."""

    NAME = "sleep"

    def act(self):
        return self.logind.do("sleeps", "yes")

    def over(self):
        self.logind.do("sleeps", "no")
        self.logind.wait_heard()
