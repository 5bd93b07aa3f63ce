"""Tests of the whole load monitor: a real sublet-loadmon, with connections like those
of the client and the shepherds. Usage: daemon_test.py PROGRAM TEST. Exit status 77:
skipped.

Tests wait for conditions; the deadline only ends a failed test. Nothing depends on
how long it took."""
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

FORMAT = "<IHHQIIIIq4q"
FIELDS = "magic kind reserved job attempt sequence state reason instant a0 a1 a2 a3".split()
MAGIC, HELLO, PRESENCE, ACK, CAUSE = 0x314C4253, 1, 2, 3, 4
ENDED = 33
OWNER, OWNER_SENSE = 48, 51
ACTIVE, AWAY = 1, 2
CPU, LOAD, INPUT, SCRIPT, BLIND, RULE, WITHHELD = 1, 2, 3, 5, 6, 12, 13
DEADLINE = 180
PROGRAM = sys.argv[1]
SANITIZED = "/asan/" in PROGRAM or "/tsan/" in PROGRAM


def until(condition, what):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.005)
    raise AssertionError("not in time: " + what)


def start_time(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rpartition(")")[2].split()[19])


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_seconds():
    with open("/proc/stat") as f:
        return sum(int(n) for n in f.readline().split()[1:4]) / os.sysconf("SC_CLK_TCK")


class Connection:
    """One client (job 0) or shepherd."""

    def __init__(self, path, job=0, attempt=0, hello=True):
        self.job, self.attempt = job, attempt
        self.place = None  # of the last frame CAUSE
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(path)
        if hello:
            self.send(HELLO, 1)

    def send(self, kind, sequence):
        self.socket.send(struct.pack(FORMAT, MAGIC, kind, 0, self.job, self.attempt, sequence, 0,
                                     0, 0, os.getpid(), 0, 0, 0))

    def next(self):
        """The next frame but CAUSE, or None if the monitor has closed the connection."""
        while True:
            try:
                data = self.socket.recv(256)
            except ConnectionResetError:
                return None
            frame = dict(zip(FIELDS, struct.unpack(FORMAT, data))) if data else None
            if frame is None or frame["kind"] != CAUSE:
                return frame
            self.place = data[-32:].rstrip(b"\0").decode()

    def until(self, state):
        while True:
            frame = self.next()
            assert frame is not None, "the monitor hung up"
            assert frame["magic"] == MAGIC and frame["kind"] == PRESENCE, frame
            if frame["state"] == state:
                return frame

    def hung_up(self):
        while self.next() is not None:
            pass
        return True


class Room:
    """A folder with a monitor and the jobs of a test; cleans up after itself."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="sublet-loadmon-")
        self.socket = self.folder + "/monitor.sock"
        self.control_file = self.folder + "/control"
        self.attempts = self.folder + "/attempts"
        self.log = self.folder + "/log"
        os.mkdir(self.attempts)
        self.processes = []
        self.strangers = []
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print(self.logged())
        for process in self.processes:
            process.kill()
            process.wait()
        for pid in self.strangers:
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder)

    def control(self, word):
        with open(self.control_file, "w") as f:
            f.write(word)

    def run(self, *command, **options):
        process = subprocess.Popen(command, **options)
        self.processes.append(process)
        return process

    def command(self, *options):
        return [PROGRAM, "--socket", self.socket, "--attempts", self.attempts,
                "--set", "log.file=" + self.log, *options]

    def start(self, *options):
        self.monitor = self.run(*self.command(*options))
        until(lambda: self.listening() or self.monitor.poll() is not None, "a socket")
        assert self.monitor.poll() is None, "the monitor ended"
        return self.monitor

    def listening(self):
        try:
            self.connect(hello=False).socket.close()
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False

    def start_with_control(self, word, *options):
        self.control(word)
        return self.start("--control", self.control_file, *options)

    def connect(self, *arguments, **options):
        return Connection(self.socket, *arguments, **options)

    def senses(self):
        """What `sublet owner status` is told: name -> whether it keeps jobs away, what it sees.
        Of several rules, the last."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as owner:
            owner.settimeout(DEADLINE)
            owner.connect(self.folder + "/owner.sock")
            owner.send(struct.pack(FORMAT, MAGIC, OWNER, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0))
            found = {}
            while data := owner.recv(1024):
                frame = dict(zip(FIELDS, struct.unpack(FORMAT, data[:struct.calcsize(FORMAT)])))
                if frame["kind"] == OWNER_SENSE:
                    name, value = data[struct.calcsize(FORMAT):].decode().split("\n")
                    found[name] = (frame["state"], value)
            return found

    def logged(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log) as f:
            return f.read()

    def job(self, number, command=("sleep", "1000"), save_ms=2000, cgroup=""):
        """A running attempt `number`.1, with the files that a shepherd writes. Its shepherd is
        an idle process: the test connects in its place. `cgroup`: a folder that it joins."""
        folder = f"{self.attempts}/{number}.1"
        os.mkdir(folder)
        shepherd = self.run("sleep", "1000")
        if cgroup:
            command = ("sh", "-c", 'echo $$ > "$0"; exec "$@"', cgroup + "/cgroup.procs", *command)
        job = self.run(*command, start_new_session=True,
                       env=dict(os.environ, SUBLET_STATUS=folder + "/status"))
        with open("/proc/sys/kernel/random/boot_id") as f:
            boot = f.read().strip()
        with open(folder + "/order", "w") as f:
            f.write(f"sublet-order 1\njob {number}\nattempt 1\nprogram sleep\nwork work\n"
                    f"stdout_limit 0\nstderr_limit 0\nmonitor m\nsave_deadline_ms {save_ms}\n"
                    f"cpu_allowance_ms 50\nlease_ns 0\npatience_ms 0\nboot_id {boot}\nend\n")
        with open(folder + "/record.new", "w") as f:
            f.write(f"sublet-record 1\njob {number}\nattempt 1\nboot_id {boot}\n"
                    f"shepherd_pid {shepherd.pid}\nshepherd_start {start_time(shepherd.pid)}\n"
                    f"job_pid {job.pid}\njob_start {start_time(job.pid)}\nsession {job.pid}\n"
                    + (f"cgroup_unified {cgroup}\n" if cgroup else "") +
                    "uid -1\nstarted_ns 1\nend\n")
        os.rename(folder + "/record.new", folder + "/record")
        return job


def killed(process):
    until(lambda: process.poll() is not None, "the job's end")
    assert process.returncode == -signal.SIGKILL, process.returncode


def ready_in_order(connections):
    """Yields the connections in the order in which their next frames arrive: epoll queues
    ready sockets in that order."""
    by_fd = {connection.socket.fileno(): connection for connection in connections}
    queue = select.epoll()
    for fd in by_fd:
        queue.register(fd, select.EPOLLIN | select.EPOLLET)

    def events():
        while by_fd:
            for fd, _ in queue.poll(DEADLINE):
                if fd in by_fd:
                    yield by_fd.pop(fd)
    return events()


def scripted_return():
    """The owner's return is sent to all listeners, to the shepherds before the client."""
    with Room() as room:
        room.start_with_control("away")
        client = room.connect()
        assert client.until(AWAY)["a2"] == 0
        shepherds = [room.connect(number, 1) for number in range(1, 51)]
        everybody = [client, *shepherds]
        judged = 0
        while judged < 5:
            for connection in everybody:
                connection.until(AWAY)  # a heartbeat: the next one is 250 ms away
            order = ready_in_order(everybody)
            room.control("active")
            frames = [(connection, connection.next()) for connection in order]
            for connection in shepherds:
                connection.send(ACK, 2**31 - 1)
            # Otherwise a heartbeat came in between: try again.
            if all(frame["state"] == ACTIVE for _, frame in frames):
                assert frames[-1][0] is client
                assert frames[-1][1]["a2"] == -1
                judged += 1
            room.control("away")


def scripted_load():
    """The rule `classic` with a scripted load average: idle below 1.0, busy above 2.30."""
    with Room() as room:
        room.start_with_control("load 1.5", "--set", "rule=classic", "--set", "idle_time=0 s")
        for load, state in (1.5, ACTIVE), (0.99, AWAY), (2.3, AWAY), (2.31, ACTIVE), (1, ACTIVE):
            room.control(f"load {load}")
            # A new connection receives the current state.
            until(lambda: room.connect().next()["a3"] == round(load * 1000), f"load {load}")
            frame = room.connect().next()
            assert frame["state"] == state, (load, frame)
            assert state == AWAY or frame["reason"] == LOAD, frame
        room.control("0.1")  # sets no load average, which this rule needs
        until(lambda: room.connect().next()["reason"] == BLIND, "a blind monitor")
        room.control("awya")
        until(lambda: "the sense 'control' failed: the owner is assumed to be here; "
              f"{room.control_file}: 'awya' is not `away`" in room.logged(), "file and word")


def silent_shepherd():
    """The job of a shepherd that does not acknowledge is killed, another one is not."""
    with Room() as room:
        room.start_with_control("away")
        silent_job, other_job = room.job(1), room.job(2, save_ms=3600_000)
        silent, other = room.connect(1, 1), room.connect(2, 1)
        for shepherd in silent, other:
            shepherd.until(AWAY)
        room.control("active")
        other.send(ACK, other.until(ACTIVE)["sequence"])
        killed(silent_job)
        until(lambda: "attempt 1.1 killed: its shepherd did not answer" in room.logged(), "log")
        assert other_job.poll() is None
        assert "attempt 2." not in room.logged()


def late_job():
    """Acknowledged, but still there after its deadline: killed even if the owner is away again."""
    with Room() as room:
        room.start_with_control("away")
        job = room.job(1, save_ms=100)
        shepherd = room.connect(1, 1)
        shepherd.until(AWAY)
        room.control("active")
        shepherd.send(ACK, shepherd.until(ACTIVE)["sequence"])
        room.control("away")
        shepherd.until(AWAY)
        killed(job)
        until(lambda: "killed: it was still running after its save deadline" in room.logged(), "log")


def stopped_shepherd_full_socket():
    """A shepherd that no longer reads, with its socket full."""
    with Room() as room:
        room.start_with_control("away")
        job = room.job(1)
        shepherd = room.connect(1, 1)
        client = room.connect()
        until(lambda: "does not read what it is sent" in room.logged(), "a full socket")
        assert job.poll() is None  # harmless while the owner is away
        room.control("active")
        killed(job)
        # The client's socket was full, too: it gets a later frame when it reads again.
        client.until(ACTIVE)
        shepherd.socket.close()


def shepherd_lost():
    """If a shepherd dies while the owner is away, its job is killed."""
    with Room() as room:
        room.start_with_control("away")
        jobs = [room.job(1), room.job(2)]
        shepherds = [room.connect(number, 1) for number in (1, 2)]
        for shepherd in shepherds:
            shepherd.until(AWAY)
        shepherds[0].socket.close()
        killed(jobs[0])
        until(lambda: "attempt 1.1 killed: its shepherd is gone" in room.logged(), "log")
        assert jobs[1].poll() is None
        # With an exit record the attempt has ended, and nothing of it is killed.
        open(f"{room.attempts}/2.1/exit", "w").close()
        shepherds[1].socket.close()
        client = room.connect()
        client.until(AWAY)
        room.control("active")
        client.until(ACTIVE)
        room.control("away")
        client.until(AWAY)
        assert "attempt 2." not in room.logged()


def one_that_ends(room):
    """A client, the shepherd of attempt 1, which has written its exit record but not said so, and
    what looks like its program."""
    room.start_with_control("away")
    client, shepherd = room.connect(), room.connect(1, 1)
    program = room.job(1)
    shepherd.until(AWAY)
    open(f"{room.attempts}/1.1/exit", "w").close()
    return client, shepherd, program


def empty_slot():
    """A shepherd whose attempt has ended is told nothing, until it runs another: that one is asked
    to leave, and what runs in its name is not taken for the attempt before."""
    with Room() as room:
        client, shepherd, first = one_that_ends(room)
        shepherd.send(ENDED, 1)
        shepherd.socket.settimeout(1)
        try:
            while True:
                shepherd.next()  # what was under way
        except TimeoutError:
            pass
        room.control("active")
        client.until(ACTIVE)
        room.control("away")
        client.until(AWAY)
        second = room.job(2, save_ms=3600_000)
        shepherd.job = 2
        shepherd.socket.settimeout(DEADLINE)
        shepherd.send(HELLO, 1)
        assert shepherd.next()["state"] == AWAY
        room.control("active")
        shepherd.send(ACK, shepherd.until(ACTIVE)["sequence"])
        # A fixed time, not a condition: longer than a shepherd has to answer. Attempt 1 has said that
        # it ended, so nobody kills what looks like it, and attempt 2 has answered.
        time.sleep(1)
        assert first.poll() is None and second.poll() is None


def follower():
    """The HELLO of a shepherd's next attempt says that the one before has ended: only the next one is
    asked to leave, and what looks like the one before is not killed for its silence."""
    with Room() as room:
        client, shepherd, first = one_that_ends(room)
        second = room.job(2, save_ms=3600_000)
        shepherd.job = 2
        shepherd.send(HELLO, 1)
        shepherd.until(AWAY)
        room.control("active")
        client.until(ACTIVE)
        shepherd.send(ACK, shepherd.until(ACTIVE)["sequence"])
        # As above: longer than a shepherd has to answer.
        time.sleep(1)
        assert first.poll() is None and second.poll() is None


def unattended_job():
    """An attempt without a shepherd is logged, and killed when the owner returns."""
    with Room() as room:
        early = room.job(1)
        room.start_with_control("away")
        client = room.connect()
        client.until(AWAY)
        late = room.job(2)
        for number in 1, 2:
            until(lambda: f"attempt {number}.1 runs without a shepherd" in room.logged(), "log")
        assert early.poll() is None and late.poll() is None
        room.control("active")
        killed(early)
        killed(late)
        until(lambda: "attempt 2.1 killed: it has no shepherd" in room.logged(), "log")


def owner_here_at_start():
    """A shepherd that connects while the owner is here is asked at once."""
    with Room() as room:
        room.start_with_control("active")
        job = room.job(1)
        shepherd = room.connect(1, 1)
        assert shepherd.next()["state"] == ACTIVE
        killed(job)


def monitor_ends():
    """However the monitor ends, its listeners notice; the next one takes over."""
    with Room() as room:
        for number, status in (signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0):
            monitor = room.start_with_control("away")
            until(lambda: "watching for the owner" in room.logged(), "its start")
            listeners = [room.connect(), room.connect(1, 1)]
            for listener in listeners:
                listener.until(AWAY)
            monitor.send_signal(number)
            for listener in listeners:
                assert listener.hung_up()
            assert monitor.wait(DEADLINE) == status
            os.unlink(room.log)


def wrong_user():
    """Only root and the monitor's own user may connect, whatever the socket's mode."""
    if os.geteuid() != 0:
        print("skipped: needs root")
        sys.exit(77)
    with Room() as room:
        room.start_with_control("away")
        os.chmod(room.folder, 0o755)
        os.chmod(room.socket, 0o666)
        pid = os.fork()
        if pid == 0:
            os.setresuid(65534, 65534, 65534)
            try:
                stranger = room.connect()
                os._exit(0 if stranger.next() is None else 1)
            except (ConnectionError, BrokenPipeError):
                os._exit(0)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        until(lambda: "of user id 65534: only root" in room.logged(), "the log")
        room.connect().until(AWAY)


def hostile_listeners():
    """An invalid frame closes only its own connection; connections are limited."""
    with Room() as room:
        monitor = room.start_with_control("away", "--set", "most_connections=8")
        client = room.connect()
        client.until(AWAY)
        good = struct.pack(FORMAT, MAGIC, HELLO, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0)
        for bad in b"x", good[:-1], good + b"x", b"\0" * 72, b"\xff" * 4096, good[:6] + b"\1" + good[7:]:
            hostile = room.connect(hello=False)
            hostile.socket.send(bad)
            assert hostile.hung_up()
        talker = room.connect(hello=False)
        for kind in range(64):
            if kind not in (HELLO,):
                talker.send(kind, 7)
        talker.send(HELLO, 1)
        talker.until(AWAY)
        twins = [room.connect(5, 1), room.connect(5, 1)]
        twins[0].until(AWAY)
        assert twins[1].hung_up()  # only one connection per attempt
        crowd = [room.connect(hello=False) for _ in range(20)]
        until(lambda: "more than 8 connections" in room.logged(), "the log")
        room.control("active")
        client.until(ACTIVE)
        for one in crowd:
            one.socket.close()
        until(lambda: accepted(room), "room for another")
        assert monitor.poll() is None


def accepted(room):
    try:
        return room.connect().next() is not None
    except ConnectionError:
        return False


def descriptors(monitor):
    folder = f"/proc/{monitor.pid}/fd"
    names = {}
    for number in os.listdir(folder):
        try:
            names[int(number)] = os.readlink(f"{folder}/{number}")
        except FileNotFoundError:
            pass
    return names


def many_visitors():
    """Hundreds of short connections, some without a HELLO: the monitor leaks no descriptor
    and closes none of its own."""
    with Room() as room:
        monitor = room.start_with_control("away")
        first = room.connect()
        first.next()
        # Its own descriptors have lower numbers than its connections.
        before = {n: name for n, name in descriptors(monitor).items() if n < 9}
        count = len(descriptors(monitor))
        for round_ in range(20):
            here = []
            for i in range(30):
                os.mkdir(f"{room.attempts}/{round_ * 30 + i + 1}.1")
                here.append(room.connect(round_ * 30 + i + 1, 1))
                here.append(room.connect(hello=False))
                here.append(room.connect())
                here[-2].socket.send(b"an invalid frame")
            for i, visitor in enumerate(here):
                if i % 3 == 0:
                    visitor.next()
                    os.rmdir(f"{room.attempts}/{visitor.job}.1")
                visitor.socket.close()
        until(lambda: len(descriptors(monitor)) <= count, "all connections closed")
        after = descriptors(monitor)
        assert all(after.get(n) == name for n, name in before.items()), (before, after)
        room.connect(9999, 1).until(AWAY)


def late_reader():
    """A HELLO sent in time counts, even if the monitor could not run to read it."""
    with Room() as room:
        monitor = room.start_with_control("away")
        other = room.connect()
        other.next()
        count = len(descriptors(monitor))
        client = room.connect(hello=False)
        until(lambda: len(descriptors(monitor)) > count, "its connection")
        monitor.send_signal(signal.SIGSTOP)
        # Fixed times, not conditions: its timer expires before the HELLO arrives.
        time.sleep(1)
        client.send(HELLO, 1)
        time.sleep(5)
        monitor.send_signal(signal.SIGCONT)
        client.until(AWAY)


def second_monitor():
    """One monitor per socket; a second one names the process that has it."""
    with Room() as room:
        monitor = room.start_with_control("away")
        other = subprocess.run(room.command(), capture_output=True, text=True, timeout=DEADLINE)
        assert other.returncode == 1, other
        assert f"process {monitor.pid} is already its load monitor" in other.stderr, other
        room.connect().until(AWAY)


def exit_when_alone():
    """Exits after that long without a connection, not before."""
    with Room() as room:
        monitor = room.start_with_control("away", "--exit-when-alone", "2")
        client = room.connect()
        client.until(AWAY)
        for _ in range(5):
            room.control("active")
            client.until(ACTIVE)
            room.control("away")
            client.until(AWAY)
        assert monitor.poll() is None
        client.socket.close()
        assert monitor.wait(DEADLINE) == 0


def script():
    """A script is played from the start; an invalid one is rejected."""
    with Room() as room:
        path = room.folder + "/script"
        with open(path, "w") as f:
            f.write("# a short day\n0 active\n0.5 away\n1 0.1\n4 active\n")
        began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        room.start("--script", path)
        client = room.connect()
        # Not too early; a delay depends on the machine.
        assert client.until(AWAY)["instant"] >= began + 500_000_000
        assert client.until(ACTIVE)["instant"] >= began + 4_000_000_000
        with open(path, "w") as f:
            f.write("1 away\n0 active\n")
        bad = subprocess.run(room.command("--script", path), capture_output=True, text=True,
                             timeout=DEADLINE)
        assert bad.returncode == 1 and f"{path}:2: times must not decrease" in bad.stderr, bad


def owner_spinner():
    """Real processes of the owner and the real rule: away when quiet, then active."""
    cores = os.cpu_count()
    limit = 0.7 * cores
    with Room() as room:
        room.start("--set", "idle_time=1 s", "--set", "input=false", "--set",
                   f"cpu.become_idle={limit}", "--set", f"cpu.stay_idle={limit}")
        client = room.connect()
        end = time.monotonic() + 30
        while client.next()["state"] != AWAY:
            if time.monotonic() > end:
                print("skipped: this machine is too busy to be idle")
                sys.exit(77)
        for _ in range(2 * cores):
            stranger(room)
        frame = client.until(ACTIVE)
        assert frame["reason"] == CPU and frame["a0"] > 1000 * limit, frame


def watched(connection, seconds):
    """The owner's mean CPU use over the samples of that many seconds, in cores."""
    seen = {}
    first = None
    while True:
        frame = connection.next()
        first = first or frame["instant"]
        seen[frame["instant"]] = frame["a0"] / 1000
        if frame["instant"] - first >= seconds * 1e9:
            del seen[first]
            return sum(seen.values()) / len(seen)


def masked_owner():
    """An owner's program that sleeps whenever the kernel's clock ticks is seen, nevertheless: more
    CPU use is reported than the ticks show."""
    with Room() as room:
        room.start("--set", "input=false")
        client = room.connect(1, 1)  # a shepherd has frequent heartbeats
        masked = stranger(room, os.path.dirname(PROGRAM) + "/../unit/masked")
        hidden = False
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            start, ticks, used = time.monotonic(), busy_seconds(), cpu_seconds(masked)
            reported = watched(client, 2)
            seconds = time.monotonic() - start
            ticks = (busy_seconds() - ticks) / seconds
            used = (cpu_seconds(masked) - used) / seconds
            print(f"ticks {ticks:.2f} cores, program {used:.2f}, reported {reported:.2f}")
            hidden = hidden or ticks < used / 2
            if reported > ticks + used / 2:
                return
        if not hidden:
            print("skipped: this kernel's clock, or this machine's other load, shows the program")
            sys.exit(77)
        raise AssertionError("the program was not seen")


def stranger(room, *command):
    """Starts a program, a spinner if none is given, that is no descendant of this process: the
    monitor counts a process connected as a shepherd, and all its descendants, as part of the
    job."""
    command = command or (sys.executable, "-c", "while True: pass")
    pid = int(subprocess.check_output(["sh", "-c", '"$@" > /dev/null & echo $!', "-", *command]))
    room.strangers.append(pid)
    return pid


def agrees(connection, spinner, owner):
    """Whether, over some samples, the reported CPU use of the owner agrees with the kernel's
    figures, with or without the spinner. Both cover slightly different times, so the result
    is inconclusive, and False, if the machine's other load varies or the spinner hardly runs."""
    start, busy, used = time.monotonic(), busy_seconds(), cpu_seconds(spinner)
    reported = watched(connection, 2)
    passed = time.monotonic() - start
    busy = (busy_seconds() - busy) / passed
    used = (cpu_seconds(spinner) - used) / passed
    expected = busy if owner else busy - used
    print(f"machine {busy:.2f} cores, spinner {used:.2f}, owner's {expected:.2f}, "
          f"reported {reported:.2f}")
    return used > 0.2 and abs(reported - expected) < used / 4


def job_spinner():
    """A job's CPU use does not count as the owner's; that of the same spinner outside a job
    does. Compared with the kernel's figures for the same time, so other load does not matter.
    A monitor that confused them would always be wrong by the spinner's CPU use."""
    with Room() as room:
        room.start("--set", "input=false")
        # The owner counts as present all the time; the job has an hour to leave.
        job = room.job(1, (sys.executable, "-c",
                           "import subprocess, sys\n"
                           "subprocess.run([sys.executable, '-c', 'while True: pass'])"),
                       save_ms=3600_000)
        child = int(until(lambda: open(f"/proc/{job.pid}/task/{job.pid}/children").read(), "it"))
        for owner, spinner in (False, child), (True, None):
            if owner:
                spinner = stranger(room)
            shepherd = room.connect(1, 1)
            shepherd.send(ACK, shepherd.until(ACTIVE)["sequence"])
            until(lambda: agrees(shepherd, spinner, owner), "a span in which both are right")
            if owner:
                return
            room.processes.remove(job)
            os.kill(child, signal.SIGKILL)
            job.wait()
            open(f"{room.attempts}/1.1/exit", "w").close()
            shepherd.socket.close()


# Burns about half a core in short processes that nobody reaps: their CPU time is in no process.
UNREAPED = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        end = time.process_time() + 0.06
        while time.process_time() < end:
            pass
        os._exit(0)
    time.sleep(0.1)
"""


class JobsGroup:
    """A cgroup like those that shepherds make; None if none can be made."""

    def __enter__(self):
        roots = [root for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
                 if os.path.exists(root + "/cgroup.controllers")]
        self.folder = f"{(roots + [''])[0]}/sublet-test-{os.getpid()}"
        try:
            os.mkdir(self.folder)
        except OSError as error:
            print("skipped: no cgroup v2 to make groups in:", error)
            sys.exit(77)
        return self

    def __exit__(self, *_):
        with open(self.folder + "/cgroup.kill", "w") as f:
            f.write("1")
        until(lambda: not self.members(), "the job's end")
        os.rmdir(self.folder)

    def members(self):
        with open(self.folder + "/cgroup.procs") as f:
            return f.read().split()

    def used(self):
        with open(self.folder + "/cpu.stat") as f:
            return int(f.readline().split()[1]) / 1e6


def unreaped_job():
    """The CPU time of a job that has a cgroup is what that accounts for, whoever reaps it."""
    def is_right():
        begin = time.monotonic(), busy_seconds(), group.used()
        seen = watched(shepherd, 2)
        end = time.monotonic(), busy_seconds(), group.used()
        seconds, busy, jobs = [after - before for before, after in zip(begin, end)]
        print(f"owner {seen:.2f}, all {busy / seconds:.2f}, job {jobs / seconds:.2f}")
        return jobs / seconds > 0.2 and abs(seen - (busy - jobs) / seconds) < jobs / seconds / 4
    with JobsGroup() as group, Room() as room:
        room.start("--set", "input=false")
        room.job(1, (sys.executable, "-c", UNREAPED), save_ms=3600_000, cgroup=group.folder)
        shepherd = room.connect(1, 1)
        shepherd.send(ACK, shepherd.until(ACTIVE)["sequence"])
        until(lambda: is_right() and is_right(), "two spans in which both are right")


# A program with a terminal of its own: a key is typed there for each byte of the FIFO, and read.
TYPIST = """
import os, pty, sys
master, slave = pty.openpty()
fifo = os.open(sys.argv[1], os.O_RDWR)
while os.read(fifo, 1):
    os.write(master, b'k\\n')
    os.read(slave, 16)
"""
# Nothing but input counts, and a second without it makes the machine idle.
INPUT_ONLY = [word for setting in ("cpu.become_idle=-1", "cpu.stay_idle=-1", "idle_time=1 s")
              for word in ("--set", setting)]


def own_terminals():
    """Runs this test in a namespace of its own with no other terminals, so that those of this
    machine do not disturb."""
    if "SUBLET_OWN_TERMINALS" in os.environ:
        return
    if os.geteuid() != 0:
        sys.exit(77)
    # /dev/ptmx may lead to the terminals of another mount, as in a container.
    mount = ("mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts && "
             "{ [ -L /dev/ptmx ] || mount --bind /dev/pts/ptmx /dev/ptmx; }")
    os.execvpe("unshare", ["unshare", "--mount", "sh", "-c", mount + ' && exec "$0" "$@"',
                           sys.executable, "-B", *sys.argv], dict(os.environ,
                                                                  SUBLET_OWN_TERMINALS="1"))


def terminals():
    """A key at a terminal is the owner's, but not one that a job types at its own."""
    own_terminals()
    with Room() as room:
        fifos = [f"{room.folder}/{name}" for name in ("jobs", "owners")]
        for fifo in fifos:
            os.mkfifo(fifo)
        jobs, owners = [os.open(fifo, os.O_RDWR) for fifo in fifos]
        # Longer than between two looks at access times, which would see the job's terminal.
        room.start(*INPUT_ONLY, "--set", "idle_time=3 s")
        early = room.connect()
        early.until(AWAY)
        room.job(1, (sys.executable, "-c", TYPIST, fifos[0]))
        shepherd = room.connect(1, 1)
        for _ in range(20):  # 5 s of heartbeats
            os.write(jobs, b"k")
            frame = shepherd.next()
            assert frame["state"] == AWAY, frame
        until(lambda: os.listdir("/dev/pts") != ["ptmx"], "the job's terminal")
        # The owner's program is no descendant of the shepherd, which this process is here.
        stranger(room, sys.executable, "-c", TYPIST, fifos[1])
        assert shepherd.until(ACTIVE)["reason"] == INPUT  # a terminal that opens is somebody
        shepherd.send(ACK, 2**31 - 1)
        client = room.connect()  # who has not read for seconds is told the last state only
        client.until(AWAY)
        os.write(owners, b"k")
        frame = client.until(ACTIVE)
        assert frame["reason"] == INPUT, frame
        until(lambda: "the owner is here: input (terminals, pts/" in room.logged(), "the log")


def devices():
    """An event of an input device is the owner's, also of one that is plugged in later; one that
    is unplugged does no harm. A FIFO stands for the device."""
    with Room() as room:
        folder = room.folder + "/dev/input"
        os.makedirs(folder)
        os.symlink("/proc", room.folder + "/proc")
        room.start(*INPUT_ONLY, "--set", "root=" + room.folder)
        until(lambda: "'input devices': there are none in " + folder in room.logged(), "the log")
        client = room.connect()
        for name in "event0", "event1":
            client.until(AWAY)
            os.mkfifo(f"{folder}/{name}")
            device = os.open(f"{folder}/{name}", os.O_RDWR)
            # It is opened with the next sample, and holds what came before.
            os.write(device, bytes(24))
            assert client.until(ACTIVE)["reason"] == INPUT
            client.until(AWAY)
            os.write(device, bytes(24))
            assert client.until(ACTIVE)["reason"] == INPUT
            client.until(AWAY)
            assert client.place == name, client.place
            os.close(device)
            os.remove(f"{folder}/{name}")
        client.until(AWAY)
        until(lambda: all("the owner is here: input (input devices, event%d)" % i in room.logged()
                          for i in range(2)), "the log")


def spent(pid):
    """Wake-ups and CPU nanoseconds of a process until now, and the time."""
    tasks = f"/proc/{pid}/task"
    wakeups = nanoseconds = 0
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/status") as f:
            wakeups += sum(int(l.split()[1]) for l in f if l.startswith("voluntary"))
        with open(f"{tasks}/{task}/schedstat") as f:
            nanoseconds += int(f.read().split()[0])
    return wakeups, nanoseconds, time.monotonic()


def mouse():
    """A mouse that sends a thousand events a second wakes nobody more than four times a second."""
    with Room() as room:
        os.makedirs(room.folder + "/dev/input")
        os.symlink("/proc", room.folder + "/proc")
        os.mkfifo(room.folder + "/dev/input/event0")
        device = os.open(room.folder + "/dev/input/event0", os.O_RDWR | os.O_NONBLOCK)
        monitor = room.start(*INPUT_ONLY, "--set", "root=" + room.folder)
        client = room.connect()
        os.write(device, bytes(24))
        client.next()
        before, events = spent(monitor.pid), 0
        while time.monotonic() < before[2] + 5:  # the time that is measured
            try:
                os.write(device, bytes(24))
                events += 1
            except BlockingIOError:  # the FIFO is full, which a device drops
                pass
            time.sleep(0.001)
        after = spent(monitor.pid)
        seconds = after[2] - before[2]
        assert (after[0] - before[0]) / seconds <= 4, (before, after, events)


def flood_of_terminals():
    """A job that opens and closes terminals all the time is not taken for the owner, does not hide
    the owner, and does not keep the monitor busy."""
    own_terminals()
    with Room() as room:
        room.start(*INPUT_ONLY)
        flood = "import os, pty\nwhile True: [os.close(end) for end in pty.openpty()]"
        room.job(1, (sys.executable, "-c", flood), save_ms=3600_000)
        shepherd = room.connect(1, 1)
        for _ in range(3):
            shepherd.until(AWAY)
            for _ in range(8):
                frame = shepherd.next()
                assert frame["state"] == AWAY, frame
            before = spent(room.monitor.pid)
            stranger(room, sys.executable, "-c",
                     "import pty, time; ends = pty.openpty(); time.sleep(1000)")
            frame = shepherd.until(ACTIVE)
            assert frame["reason"] == INPUT, frame
            shepherd.send(ACK, frame["sequence"])
            after = spent(room.monitor.pid)
            assert (after[1] - before[1]) / 1e9 / (after[2] - before[2]) < 0.5, (before, after)


def real_time():
    """As root the monitor runs before everybody's programs, and its memory stays, but it loses the
    former if it spins. A debugger's stop is not a wait; so a stopped monitor stays real-time."""
    if os.geteuid() != 0:
        sys.exit(77)

    def policy(pid):
        return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK

    with Room() as room:
        monitor = room.start_with_control("away")
        room.connect().until(AWAY)
        if policy(monitor.pid) == os.SCHED_OTHER:
            print("skipped: real-time scheduling is not permitted here")
            sys.exit(77)
        assert policy(monitor.pid) == os.SCHED_RR
        with open(f"/proc/{monitor.pid}/status") as f:
            locked = next(int(line.split()[1]) for line in f if line.startswith("VmLck"))
        assert locked > 0 or SANITIZED  # whose libraries leave it out
        os.kill(monitor.pid, signal.SIGXCPU)  # as the kernel does
        until(lambda: policy(monitor.pid) == os.SCHED_OTHER, "normal scheduling")
        until(lambda: os.getpriority(os.PRIO_PROCESS, monitor.pid) == -5, "nice -5")
        room.control("active")
        room.connect().until(ACTIVE)


def at_rest():
    """The monitor's resource use while nothing happens, with a client connected."""
    with Room() as room:
        monitor = room.start()
        client = room.connect()
        client.next()
        before = spent(monitor.pid)
        time.sleep(5)  # the time that is measured
        after = spent(monitor.pid)
        seconds = after[2] - before[2]
        # The budget of monitor and client together; `bench/run idle` measures both.
        wakeups, cores = (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds / 1e9
        assert wakeups <= 4, wakeups
        assert cores <= 0.01, cores  # ten times the budget, because other load adds to it
        with open(f"/proc/{monitor.pid}/smaps_rollup") as f:
            # What it has written to; `bench/run idle` also counts its code.
            written = sum(int(line.split()[1]) for line in f if line.startswith("Anonymous:"))
        assert written <= 700 or SANITIZED, written


def rules():
    """The administrator's rules over what is known of the machine."""
    with Room() as room:
        battery = room.folder + "/root/sys/class/power_supply/BAT0"
        os.makedirs(battery)

        def charge(status, per_cent):
            for name, text in (("type", "Battery"), ("status", status), ("capacity", per_cent)):
                with open(f"{battery}/{name}", "w") as f:
                    f.write(f"{text}\n")
        charge("Charging", 50)
        room.start_with_control("away", "--set", "root=" + room.folder + "/root",
                                "--set", "idle_time=1 s", "--set", "idle_when=battery >= 40",
                                "--set", "evict_when=on_battery and battery < 20")
        connection = room.connect()
        connection.until(AWAY)
        charge("Discharging", 12)
        frame = connection.until(ACTIVE)
        assert frame["reason"] == RULE, frame
        line = ("no jobs by evict_when: on_battery (on_battery is true); "
                "evict_when: battery < 20 (battery is 12)")
        until(lambda: line in room.logged(), "the log to say which rule")
        senses = room.senses()
        assert senses["rule"] == (1, "evict_when: battery < 20 (battery is 12)"), senses
        assert senses["simulated owner"] == (0, "away"), senses
        charge("Charging", 30)  # neither rule, and the rest is over: it must not become idle
        until(lambda: connection.until(ACTIVE)["reason"] == WITHHELD, "a frame")
        room.control("active")
        until(lambda: connection.next()["reason"] == SCRIPT, "the owner to count first")
        room.control("away")
        charge("Charging", 40)
        connection.until(AWAY)


def programs_of_jobs():
    """A rule about a program is about the owner's, not about a job's of the same name."""
    with Room() as room:
        program = room.folder + "/tally"
        shutil.copy("/bin/sleep", program)
        job = room.job(7, (program, "1000"), save_ms=3600_000)
        room.start_with_control("away", "--set", "idle_time=1 s",
                                "--set", "evict_when='tally' in programs")
        shepherd = room.connect(7, 1)
        shepherd.send(ACK, shepherd.until(ACTIVE)["sequence"])  # nothing is known yet
        shepherd.until(AWAY)
        owner = room.run(program, "1000")
        back = shepherd.until(ACTIVE)
        assert back["reason"] == RULE
        shepherd.send(ACK, back["sequence"])
        owner.kill()  # it ends, but nobody waits for it
        shepherd.until(AWAY)
        assert job.poll() is None


def wrong_rules():
    with Room() as room:
        for setting, complaint in (
                ("evict_when=on_batery", "evict_when: column 1: unknown name 'on_batery'; "
                                         "did you mean 'on_battery'?"),
                ("idle_when=cpu < 1 @", "idle_when: column 9: '@' cannot stand outside of a text"),
                ("idle_when=1 > 2 and media", "idle_when: it is always false, so no job could "
                                              "ever run here"),
                ("evict_when=true", "evict_when: it is always true, so no job could ever run here")):
            done = subprocess.run(room.command("--set", setting), capture_output=True, text=True,
                                  timeout=DEADLINE)
            assert done.returncode == 2 and complaint in done.stderr, done


TESTS = [scripted_return, scripted_load, silent_shepherd, late_job, empty_slot, follower,
         stopped_shepherd_full_socket, shepherd_lost, unattended_job, owner_here_at_start, monitor_ends, wrong_user, hostile_listeners,
         many_visitors, late_reader, second_monitor, exit_when_alone, script, owner_spinner, masked_owner, job_spinner, unreaped_job,
         terminals, devices, mouse, flood_of_terminals, real_time, at_rest, rules, programs_of_jobs, wrong_rules]

if __name__ == "__main__":
    {test.__name__: test for test in TESTS}[sys.argv[2]]()
