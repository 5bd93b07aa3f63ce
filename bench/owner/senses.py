"""The owner's hand: makes an event where a sense of the monitor is. A workstation has all of them
at once, below a root folder of its own, so that this machine's terminals do not disturb."""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import termios
import time

import harness
import measure

sys.path.insert(0, os.path.join(harness.ROOT, "test", "desktops"))
import desktop  # noqa: E402

TIOCGPTN, TIOCSPTLCK = 0x80045430, 0x40045431  # <asm-generic/ioctls.h>
CLONE_NEWNS = 0x00020000
EVENT_BYTES = 24  # of <linux/input.h>
# The monitor's settings: only input counts, and a moment without it makes the machine idle.
SAMPLE_PERIOD_MS = 100
SETTINGS = ["idle_time=100 ms", "sample_period=%d ms" % SAMPLE_PERIOD_MS, "cpu.become_idle=-1",
            "cpu.stay_idle=-1"]


def real_time(pid=0):
    """What plays or observes the owner does not wait for the owner's programs, as a device and a
    clock do not. As far as it is permitted."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


class Room(contextlib.ExitStack):
    """What the senses look at: a root folder, and desktops, which a desktop.Session sees as its
    test case."""

    addCleanup = contextlib.ExitStack.callback

    def __init__(self, pool):
        super().__init__()
        self.logind = None  # a logind.Logind
        self.client_options = []
        self.root = os.path.join(pool.folder, "root")
        os.makedirs(os.path.join(self.root, "dev", "input"))
        os.symlink("/sys", os.path.join(self.root, "sys"))
        # No processes: what is looked up by pid below the root does not matter here.
        os.mkdir(os.path.join(self.root, "proc"))
        for name in os.listdir("/proc"):
            if not name.isdigit() and name != "asound":
                os.symlink("/proc/" + name, os.path.join(self.root, "proc", name))
        # Both are looked for when the monitor starts.
        self.stream = os.path.join(self.root, "proc/asound/card0/pcm0p/sub0/status")
        os.makedirs(os.path.dirname(self.stream))
        self.camera = os.path.join(self.root, "dev", "video0")
        for path in (self.stream, self.camera):
            with open(path, "w") as f:
                f.write("closed\n")
        self.pts = os.path.join(self.root, "dev", "pts")
        if os.geteuid() == 0:
            self.mount_terminals()
        else:
            os.symlink("/dev/pts", self.pts)

    def mount_terminals(self):
        os.mkdir(self.pts)
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
            raise measure.Unmeasurable("no mount namespace: " + os.strerror(ctypes.get_errno()))
        for words in (["--make-rprivate", "/"],
                      ["-t", "devpts", "-o", "newinstance,ptmxmode=0666", "devpts", self.pts]):
            subprocess.run(["mount"] + words, check=True)
        self.callback(subprocess.run, ["umount", self.pts], check=True)


class Hand:
    """What plays the owner at one sense. act() returns the instant just before the event, over()
    takes back what does not end by itself."""

    STOPPED_BUDGET_MS = 10  # None: it has none

    @classmethod
    def missing(cls):
        """What must be installed for it, or None."""

    @classmethod
    def prepare(cls, room):
        """Called before the workstation starts."""

    def over(self):
        pass


class Key(Hand):
    """A key typed at a pseudo-terminal, where a program of the owner's reads it."""

    NAME = "key"
    REST = 1.25  # for a second the monitor looks away from a sense that it has heard

    def __init__(self, room, _client):
        self.master = os.open(os.path.join(room.pts, "ptmx"), os.O_RDWR | os.O_NOCTTY)
        room.callback(os.close, self.master)
        fcntl.ioctl(self.master, TIOCSPTLCK, struct.pack("i", 0))
        number, = struct.unpack("i", fcntl.ioctl(self.master, TIOCGPTN, bytes(4)))
        with open(os.path.join(room.pts, str(number)), "rb", buffering=0) as slave:
            forget_echo(slave)
            reader = subprocess.Popen(["cat"], stdin=slave, stdout=subprocess.DEVNULL,
                                      start_new_session=True)
        room.callback(reader.wait)
        room.callback(reader.kill)

    def act(self):
        at = time.monotonic()
        os.write(self.master, b"k\n")
        return at


def forget_echo(terminal):
    """Nobody reads what it would write."""
    modes = termios.tcgetattr(terminal)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, modes)


class Device(Hand):
    """An event of an input device; a FIFO stands for it."""

    NAME = "device"
    REST = 1.25

    def __init__(self, room, _client):
        path = os.path.join(room.root, "dev", "input", "event0")
        os.mkfifo(path)
        self.fifo = os.open(path, os.O_RDWR)
        room.callback(os.close, self.fifo)

    def act(self):
        at = time.monotonic()
        os.write(self.fifo, bytes(EVENT_BYTES))
        return at


class Desktop(Hand):
    """A key of a program that plays a desktop's owner."""

    REST = 0.4  # the agent waits for a quarter of a second of silence
    WORD = "key"

    @classmethod
    def missing(cls):
        return desktop.missing(cls.PROGRAM)

    def __init__(self, room, client):
        session = desktop.Session(room)
        self.start(session)
        self.owner = desktop.Owner(session, self.HAND)
        real_time(self.owner.process.pid)
        session.start_agent(client.state)

    def act(self):
        # Its instant is that of the clock that goes on during suspend.
        ahead = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
        return (self.owner.do(self.WORD) - ahead) / measure.NS


class X11(Desktop):
    NAME = "x11"
    HAND = "xtest_input"
    PROGRAM = "Xvfb"

    def start(self, session):
        session.start_x()


class FullScreen(X11):
    """A window fills the screen."""

    NAME = "full_screen"
    WORD = "fill"
    REST = 2.5  # the agent tells of a change at once, but only once a second
    STOPPED_BUDGET_MS = Hand.STOPPED_BUDGET_MS + SAMPLE_PERIOD_MS

    def over(self):
        self.owner.do("shrink")


class Sway(Desktop):
    NAME = "sway"
    HAND = "virtual_keyboard"
    PROGRAM = "sway"

    def start(self, session):
        session.start_sway()


class Control(Hand):
    """The monitor's control file, which replaces all senses: the reference."""

    NAME = "control"
    REST = 0

    def __init__(self, client):
        self.client = client

    def act(self):
        at = time.monotonic()
        self.client.owner("active")
        return at

    def over(self):
        self.client.owner("away")


class Word(Hand):
    """The owner's word: what `sublet owner pause` sends."""

    NAME = "word"
    REST = 0
    FRAME = struct.Struct("=IHHQIIIIq4q")
    MAGIC, OWNER, PAUSE, RESUME = 0x314C4253, 48, 2, 3

    def __init__(self, _room, client):
        self.path = os.path.join(client.state, "owner.sock")

    def say(self, word):
        """Its instant, and the connection on which the answer comes when the word is stored."""
        monitor = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        monitor.settimeout(harness.PATIENCE)
        monitor.connect(self.path)
        frame = self.FRAME.pack(self.MAGIC, self.OWNER, 0, 0, 0, 0, word, 0, 0, 0, 0, 0, 0)
        at = time.monotonic()
        monitor.send(frame)
        return at, monitor

    def act(self):
        at, self.answers = self.say(self.PAUSE)
        return at

    def over(self):
        for answers in (self.answers, self.say(self.RESUME)[1]):
            with answers:
                while answers.recv(4096):
                    pass


class Camera(Hand):
    """A program of the owner's opens a camera, for which a file stands."""

    NAME = "camera"
    REST = 0

    def __init__(self, room, _client):
        self.path = room.camera

    def act(self):
        at = time.monotonic()
        self.fd = os.open(self.path, os.O_RDONLY)
        return at

    def over(self):
        os.close(self.fd)


class Sound(Hand):
    """The kernel says that sound is played. The monitor looks at it with each sample."""

    NAME = "sound"
    REST = 0
    STOPPED_BUDGET_MS = Hand.STOPPED_BUDGET_MS + SAMPLE_PERIOD_MS

    def __init__(self, room, _client):
        self.stream = room.stream

    def write(self, state):
        with open(self.stream + ".new", "w") as f:
            f.write(state + "\n")
        at = time.monotonic()
        os.rename(f.name, self.stream)
        return at

    def act(self):
        return self.write("state: RUNNING")

    def over(self):
        self.write("closed")
