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
MAGIC, ACK, AGENT, HERE, PING, FULL_SCREEN = 0x314C4253, 3, 64, 65, 66, 67
OWNER, OWNER_SENSE = 48, 51
X11, EXT, KDE, MUTTER = 1, 2, 3, 4
ACTIVE, AWAY = 1, 2
INPUT, UNSEEN, SLEEP, MEDIA = 3, 9, 10, 11
# As in the agent: kQuietMs, Reports::kRepeat.
QUIET, REPEAT = 0.25, 2.0
NOBODY = 65534


def missing(*programs):
    """The first of these programs that is not installed, or None."""
    return next((name for name in programs if shutil.which(name) is None), None)


def answers(path):
    """Whether somebody listens at this socket. That it is there is not enough: a compositor makes
    it first, and listens then."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


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

    def full_screen(self):
        """Waits for word whether a full-screen program is in front; returns it."""
        while True:
            kind, state, _, _ = self.next()
            if kind == FULL_SCREEN:
                return state

    def settle(self):
        """Until the agent has nothing more to say: the desktop is quiet."""
        while self.next(1.5 * REPEAT) is not None:
            pass

    def silent(self):
        """Whether the agent lives and has nothing to say for longer than it may put that off."""
        return self.ping(1) == 1 and self.next(1.5 * REPEAT) is None

    def send_ping(self, sequence):
        self.agent.send(FRAME.pack(MAGIC, PING, 0, 0, 0, sequence, 0, 0, 0, 0, 0, 0, 0))

    def ping(self, sequence):
        """Returns the sequence number that is answered."""
        self.send_ping(sequence)
        while True:
            kind, _, answered, _ = self.next()
            if kind == ACK:
                return answered

    def close(self):
        if self.agent is not None:
            self.agent.close()
        self.listener.close()


# Like the client of this machine: prints each presence that the monitor tells, and its reason.
LISTENER = """
import os, socket, struct, sys, time
frame = struct.Struct("=IHHQIIIIq4q")
monitor = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
while monitor.connect_ex(sys.argv[1]) != 0:
    time.sleep(0.01)
monitor.send(frame.pack(0x314C4253, 1, 0, 0, 0, 1, 0, 0, 0, os.getpid(), 0, 0, 0))
while True:
    fields = frame.unpack(monitor.recv(256))
    if fields[1] == 2:
        print(fields[6], fields[7], flush=True)
"""


class LoadMonitor:
    """A real load monitor, for which only input counts, and a client of this machine. It is idle
    after a second of silence."""

    def __init__(self, session, *options):
        self.folder = session.folder
        path = os.path.join(self.folder, "monitor.sock")
        settings = ["idle_time=1 s", "cpu.become_idle=-1", "cpu.stay_idle=-1",
                    "log.file=" + os.path.join(self.folder, "log")]
        self.process = session.run(os.path.join(harness.BIN, "sublet-loadmon"), "--socket", path,
                                   *options, *(word for one in settings for word in ("--set", one)))
        # A process of its own: what descends from a client counts as a job.
        self.client = session.run(sys.executable, "-c", LISTENER, path, stdout=subprocess.PIPE,
                                  text=True)

    def log(self):
        try:
            with open(os.path.join(self.folder, "log")) as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def senses(self):
        """What `sublet owner status` is told: name -> whether it keeps jobs away, what it sees."""
        found = {}
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as owner:
            owner.settimeout(harness.PATIENCE)
            owner.connect(os.path.join(self.folder, "owner.sock"))
            owner.send(FRAME.pack(MAGIC, OWNER, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0))
            while data := owner.recv(1024):
                fields = FRAME.unpack(data[:FRAME.size])
                if fields[1] == OWNER_SENSE:
                    name, value = data[FRAME.size:].decode().split("\n")
                    found[name] = (fields[6], value)
        return found

    def next(self):
        """The next presence that the monitor tells, and its reason."""
        state, reason = self.client.stdout.readline().split()
        return int(state), int(reason)

    def until(self, state):
        """Waits for this presence; returns the reason."""
        while True:
            said, reason = self.next()
            if said == state:
                return reason


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

    def start_sway(self):
        """A compositor without a screen. It refuses to run as root."""
        self.environment["XDG_RUNTIME_DIR"] = folder = os.path.join(self.folder, "run")
        os.mkdir(folder, 0o700)
        account = {}
        if os.geteuid() == 0:
            os.chmod(self.folder, 0o711)
            os.chown(folder, NOBODY, NOBODY)
            account = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.environment.update(WLR_BACKENDS="headless", WLR_LIBINPUT_NO_DEVICES="1",
                                WLR_RENDERER="pixman", WAYLAND_DISPLAY="wayland-1")
        server = self.run("sway", "--config", os.devnull, stderr=subprocess.DEVNULL, **account)
        wait_for(lambda: answers(os.path.join(folder, "wayland-1")), "sway")
        return server

    def start_kwin(self):
        """Another one; it wants a session bus. A copy of the program, because where its file
        capabilities are not permitted the original cannot be executed."""
        self.start_bus()
        program = shutil.copy(shutil.which("kwin_wayland"), self.folder)
        self.environment.update(KWIN_WAYLAND_NO_PERMISSION_CHECKS="1", KWIN_COMPOSE="Q",
                                WAYLAND_DISPLAY="wayland-5")
        server = self.run(program, "--virtual", "--no-lockscreen", "--no-global-shortcuts",
                          "--socket", "wayland-5", stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
        wait_for(lambda: answers(os.path.join(self.folder, "wayland-5")), "kwin")
        return server

    def start_bare_compositor(self):
        """A compositor that has no idle protocol."""
        self.environment["WAYLAND_DISPLAY"] = "wayland-7"
        return Owner(self, "idle_compositor", "wayland-7", "bare").ready()

    def start_bus(self, *options):
        """A session bus of its own."""
        bus = self.run("dbus-daemon", "--session", "--nofork", "--print-address", *options,
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
        return bus

    def start_agent(self, state=None):
        """Its messages can be read from its stderr. `state`: the folder of the monitor's socket."""
        return self.run(os.path.join(harness.BIN, "sublet-agent"), "--state",
                        state or self.folder, stderr=subprocess.PIPE, text=True)


class Owner:
    """The owner's hand: a program that reads what to do, and answers with when it was done."""

    def __init__(self, session, program, *arguments):
        self.process = session.run(os.path.join(harness.UNIT, program), *arguments,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   bufsize=1)

    def ready(self):
        """Waits until a program that is a server, too, serves."""
        line = self.process.stdout.readline()
        assert line == "ready\n", line
        return self

    def do(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


def wake_ups(pid):
    """How often the process has been woken up."""
    with open("/proc/%d/status" % pid) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("voluntary"))


def use_without_pause(case, word):
    """An owner who does not stop costs few frames, and few wake-ups of the agent."""
    case.monitor.settle()
    before = wake_ups(case.agent.pid)
    first, heard = case.owner.do(word), 0
    for _ in range(1000):
        now = case.owner.do(word)
        heard += case.monitor.next(0.001) is not None
    pauses = (now - first) / 1e9 / QUIET
    case.assertGreaterEqual(heard, 1)
    case.assertLessEqual(heard, 2 + pauses)
    # The end of a pause and its begin, where a busy machine made one; a word, and its answer.
    case.assertLessEqual(wake_ups(case.agent.pid) - before, 4 * (2 + pauses))


def wait_asleep(process):
    def asleep():
        with open("/proc/%d/stat" % process.pid) as stat:
            return stat.read().rpartition(")")[2].split()[0] == "S"
    wait_for(asleep, "the agent to sleep")
