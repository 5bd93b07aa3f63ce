"""A desktop session for tests: sublet-agent, and a monitor's end of its socket."""

import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

FRAME = struct.Struct("=IHHQIIIIq4q")
MAGIC, ACK, AGENT, HERE, PING = 0x314C4253, 3, 64, 65, 66
X11, EXT, KDE, MUTTER = 1, 2, 3, 4
# As in the agent: kQuietMs, Reports::kRepeat.
QUIET, REPEAT = 0.25, 1.0


def missing(*programs):
    """The first of these programs that is not installed, or None."""
    return next((name for name in programs if shutil.which(name) is None), None)


class Monitor:
    """The monitor's end of agent.sock, for one agent."""

    def __init__(self, folder):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.settimeout(harness.PATIENCE)
        self.listener.bind(os.path.join(folder, "agent.sock"))
        self.listener.listen()
        self.agent = None

    def accept(self):
        """Waits for an agent; returns what it watches."""
        self.agent = self.listener.accept()[0]
        self.agent.settimeout(harness.PATIENCE)
        kind, state, _, _ = self.next()
        assert kind == AGENT, kind
        return state

    def next(self, patience=None):
        """The next frame as kind, state, sequence, instant; None: there is none in time."""
        if not select.select([self.agent], [], [], patience or harness.PATIENCE)[0]:
            return None
        data = self.agent.recv(256)
        if not data:
            raise EOFError("the agent hung up")
        fields = FRAME.unpack(data)
        assert fields[0] == MAGIC and fields[2] == 0, fields
        return fields[1], fields[6], fields[5], fields[8]

    def here(self):
        """Waits for the word that the owner is here; returns when it came (ns)."""
        frame = self.next()
        assert frame and frame[0] == HERE, frame
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def settle(self):
        """Until the agent has nothing more to say: the desktop is quiet."""
        while self.next(2 * REPEAT) is not None:
            pass

    def ping(self, sequence):
        self.agent.send(FRAME.pack(MAGIC, PING, 0, 0, 0, sequence, 0, 0, 0, 0, 0, 0, 0))
        while True:
            kind, _, answered, _ = self.next()
            if kind == ACK:
                return answered

    def close(self):
        if self.agent is not None:
            self.agent.close()
        self.listener.close()


class Session:
    """A folder, the processes of a desktop session in it, and its environment. Ends what it
    started."""

    def __init__(self, case):
        self.folder = tempfile.mkdtemp(prefix="sublet-desktop-")
        case.addCleanup(shutil.rmtree, self.folder)
        self.processes = []
        case.addCleanup(self.end)
        inherited = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY")
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in inherited}
        self.environment.update(HOME=self.folder, XDG_RUNTIME_DIR=self.folder)

    def run(self, *command, **options):
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, **options)
        self.processes.append(process)
        return process

    def end(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def start_x(self):
        """A private X server; it chooses its number."""
        told, tell = os.pipe()
        server = self.run("Xvfb", "-displayfd", str(tell), "-screen", "0", "640x480x24",
                          "-nolisten", "tcp", "-noreset", pass_fds=[tell],
                          stderr=subprocess.DEVNULL)
        os.close(tell)
        with os.fdopen(told) as number:
            self.environment["DISPLAY"] = ":" + number.readline().strip()
        return server

    def start_agent(self, **options):
        return self.run(os.path.join(harness.BIN, "sublet-agent"), "--state", self.folder, **options)


class Owner:
    """The owner's hand: a program that reads what to do, and answers with when it was done."""

    def __init__(self, session, program):
        self.process = session.run(os.path.join(harness.UNIT, program), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, bufsize=1)

    def do(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


def wake_ups(pid):
    """How often the process has been given the CPU."""
    with open("/proc/%d/status" % pid) as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)


def wait_asleep(process):
    def asleep():
        with open("/proc/%d/stat" % process.pid) as stat:
            return stat.read().rpartition(")")[2].split()[0] == "S"
    wait_for(asleep, "the agent to sleep")
