"""What goes on beside the owner's loops: tenants that work, and what is done for tenants."""

import contextlib
import fcntl
import os
import time
import urllib.parse

import harness
import measure
from interference import loops
from owner import kinds

CORES = len(loops.CORES)
ONE_LOOP = {"compute": 1, "wake": 1, "memory": 1}
PIECE = 1 << 20


class Workstation(contextlib.ExitStack):
    """A pool of one workstation, and a switch for its jobs."""

    def __init__(self, pool, slots):
        super().__init__()
        self.pool = pool
        # The server is on another machine as a rule, and nobody plays the owner: what they use must
        # not count. They and this program stay off the core of the owner's loop.
        os.sched_setaffinity(0, loops.CORES[:-1] or loops.CORES)
        self.callback(os.sched_setaffinity, 0, loops.CORES)
        pool.start_server()
        # Every input is brought from the server, none from the cache.
        self.client = pool.client("curly", slots=slots, extra=["--set", "input_cache=0"], prefix=[
            "taskset", "-c", ",".join(map(str, loops.CORES))]).start()
        pool.wait_machines(1)
        self.caller = self.enter_context(measure.Caller(pool))
        self.told = measure.Told(pool)
        self.callback(self.told.close)
        self.switch = Switch(os.path.join(pool.folder, "switch"))
        self.callback(self.switch.close)
        self.program = pool.public(measure.program("switched"))
        self.jobs = []

    def words(self, *words):
        """The command of a job that is a bench-switched."""
        return [self.program, self.told.path, self.switch.path, *map(str, words)]

    def start(self, *words):
        """Starts one on each core, and waits until all are ready."""
        for _ in range(CORES):
            self.submit(*words)
        self.hear_starts()

    def submit(self, *words):
        self.jobs.append(self.caller.ask("submit", *self.words(*words))["job"])

    def hear_starts(self):
        for _ in range(CORES):
            self.told.hear("start")

    def evict(self):
        """The owner comes back; the jobs are removed, or they would come back with his leaving."""
        self.client.owner("active")
        self.await_attempts(0)
        for job in self.jobs:
            self.caller.ask("remove", job)
        self.jobs = []
        self.client.owner("away")

    def await_attempts(self, count):
        """Until only so many are left, and nothing of the others."""
        trash = os.path.join(self.client.state, "trash")
        harness.wait_for(lambda: len(self.client.attempts()) == count and not (
            os.path.isdir(trash) and os.listdir(trash)), "the attempts' end")

    def set_idle(self, idle):
        """Whether its jobs have almost no CPU weight, or else a normal one."""
        for record in filter(None, map(self.client.record, self.client.attempts())):
            kinds.set_idle(urllib.parse.unquote(record.get("cgroup_cpu", "")), idle)


class Switch:
    """bench-switched explains it. It is off at first."""

    def __init__(self, path):
        self.path = path
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        os.fchmod(self.file, 0o666)
        self.off()

    def on(self):
        os.pwrite(self.file, b"\1", 0)
        fcntl.flock(self.file, fcntl.LOCK_UN)

    def off(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)
        os.pwrite(self.file, b"\0", 0)

    def close(self):
        os.close(self.file)


class Scene:
    """One after the other: prepare(), windows alone, begin(), a window for each of phases(),
    clean()."""

    LOOPS = ONE_LOOP  # by kind, how many at a time
    SLOTS = CORES
    HAS_BUDGET = False
    ROUNDS = 5
    ALONE_SECONDS = 2
    SETTLE_SECONDS = 0.05

    def __init__(self, here, quick):
        self.here = here
        self.quick = quick
        self.NAMES = list(self.phases())

    def phases(self):
        """Name -> what is done in its window."""
        raise NotImplementedError

    def prepare(self):
        pass

    def begin(self):
        pass

    def clean(self):
        pass

    def pause(self):
        time.sleep(0.1 if self.quick else self.ALONE_SECONDS)


class Working(Scene):
    """Jobs that work all the time."""

    ROUNDS = 12
    ALONE_SECONDS = 1
    WARM_SECONDS = 1

    def __init__(self, here, quick):
        super().__init__(here, quick)
        here.start(self.WORD)

    def prepare(self):
        time.sleep(self.SETTLE_SECONDS)

    def begin(self):
        """The window begins later: whoever wakes is soon given the CPU once, whatever its weight,
        which would count too often in short windows."""
        self.here.switch.on()
        time.sleep(self.SETTLE_SECONDS if self.quick else self.WARM_SECONDS)

    def phases(self):
        return {self.NAME: self.pause}

    def clean(self):
        self.here.switch.off()


class Spinners(Working):
    NAME, WORD = "spinners", "spin"
    LOOPS = {**ONE_LOOP, "each_core": CORES}
    HAS_BUDGET = True


class Memory(Working):
    NAME, WORD = "memory", "stream"


class Output(Working):
    NAME, WORD = "output", "output"


class Staging(Scene):
    NAME = "staging"
    ROUNDS = 2

    def __init__(self, here, quick):
        super().__init__(here, quick)
        for number in range(CORES):
            part = os.urandom(PIECE)  # another for each: the same content is brought once
            with open(os.path.join(here.pool.folder, "data-%d" % number), "wb") as f:
                for _ in range((32_000_000 if quick else 1_000_000_000) // PIECE):
                    f.write(part)

    def phases(self):
        return {"staging": self.bring, "delivery": self.deliver}

    def prepare(self):
        """What sends the inputs to the server is the user's, and not in any window."""
        here = self.here
        here.client.owner("active")
        here.pool.wait_machines(1, "busy")
        for number in range(CORES):
            here.jobs += here.pool.submit(
                "--input", "data-%d=data" % number, "--output", "copy", "--", *here.words("link"))
        os.sync()

    def bring(self):
        self.here.client.owner("away")
        self.here.hear_starts()

    def deliver(self):
        self.here.switch.on()
        self.here.await_attempts(0)

    def clean(self):
        self.here.switch.off()
        for job in self.here.jobs:
            self.here.pool.wait_state(job, "done")
        self.here.jobs = []


class Eviction(Scene):
    NAME = "eviction"
    TIMES = 5  # in a window
    BETWEEN_SECONDS = 0.1

    def phases(self):
        return {self.NAME: self.evict_all}

    def evict_all(self):
        self.here.switch.on()
        for _ in range(1 if self.quick else self.TIMES):
            self.here.start("spin")
            time.sleep(self.BETWEEN_SECONDS)
            self.here.evict()

    def clean(self):
        self.here.switch.off()


class Removal(Scene):
    NAME = "removal"
    ROUNDS = 2
    # The files of all rounds are made before any is removed: for a minute after many have been
    # removed, ext4 takes thirty times as long to make new ones.
    SLOTS = ROUNDS * len(ONE_LOOP)

    def __init__(self, here, quick):
        super().__init__(here, quick)
        for _ in range(self.SLOTS):
            here.submit("litter", 1000 if quick else 100_000)
        self.ready = 0
        # At their own weight it would take minutes beside other programs of this machine.
        harness.wait_for(self.littered_soon, "the files")
        here.set_idle(True)

    def littered_soon(self):
        self.here.set_idle(False)
        if self.here.told.waits(0.05):
            self.here.told.hear("start")
            self.ready += 1
        return self.ready == self.SLOTS

    def prepare(self):
        os.sync()

    def phases(self):
        return {self.NAME: self.remove}

    def remove(self):
        self.here.caller.ask("remove", self.here.jobs.pop())
        self.here.await_attempts(len(self.here.jobs))
