"""A private pool of real daemons for tests and the demo.

All files are in one temporary folder with a short path (a Unix socket's path has at most
107 bytes); processes are ended by pid; every wait is for a condition and has a deadline.
The programs are those in $SUBLET_BIN (default build/bin).
"""

import ctypes
import functools
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.abspath(os.environ.get("SUBLET_BIN", os.path.join(ROOT, "build", "bin")))
UNIT = os.path.join(os.path.dirname(BIN), "unit")  # the tests' own programs
SANITIZED = "/asan/" in BIN or "/tsan/" in BIN
# Sanitizers make everything slower; deadlines are for hangs, not for speed.
PATIENCE = float(os.environ.get("SUBLET_TEST_PATIENCE", "300"))

# A shell without job control starts background commands with SIGINT ignored, and `nohup`
# ignores SIGHUP; programs under test must not inherit that.
for _signal in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal == signal.SIGINT
                      else signal.SIG_DFL)


class Timeout(Exception):
    pass


def wait_for(condition, what, deadline=None):
    """Returns condition()'s first true value; raises Timeout naming `what`: a text, or a function
    that gives it, so that it says how things were in the end."""
    end = time.monotonic() + (deadline or PATIENCE)
    pause = 0.005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Timeout("waited in vain for " + (what() if callable(what) else what))
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def alive(pid):
    """Whether the process exists and is not a zombie. Of a killed one the first thread may be a
    zombie before the others are gone: until then it holds its files and sockets."""
    try:
        threads = os.listdir("/proc/%d/task" % pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(thread_state(pid, thread) not in "ZX" for thread in threads)


def thread_state(pid, thread):
    """As /proc gives it: "R", "Z", ...; "X" if it is gone."""
    try:
        with open("/proc/%d/task/%s/stat" % (pid, thread)) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def cpu_ticks(pid):
    try:
        with open("/proc/%d/stat" % pid) as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def children(pid):
    result = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry) as stat:
                if int(stat.read().rsplit(")", 1)[1].split()[1]) == pid:
                    result.append(int(entry))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return result


def tool(*words, check=True):
    """What a command of the system's says."""
    return subprocess.run(words, check=check, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout


def processes_naming(text, where=("cmdline",)):
    """Pids of processes whose command line (or environment) contains `text`."""
    result = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        for part in where:
            try:
                with open("/proc/%s/%s" % (entry, part), "rb") as page:
                    if text.encode() in page.read() and alive(int(entry)):
                        result.append(int(entry))
                        break
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                pass
    return result


def is_frozen(record):
    """Whether the attempt of this shepherd's record is frozen: its cgroup, or its program."""
    cgroup = urllib.parse.unquote(record.get("cgroup_unified", ""))
    if cgroup:
        with open(cgroup + "/cgroup.events") as events:
            return "frozen 1\n" in events.read()
    with open("/proc/%s/status" % record["job_pid"]) as status:
        facts = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    # A shell waits for a child that was stopped before it executed its program, and stops then.
    will_stop = int(facts["ShdPnd"], 16) >> signal.SIGSTOP - 1 & 1
    return facts["State"][0] == "T" or (facts["State"][0] == "D" and will_stop == 1)


def kill(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


PACE = """
import select, sys, time
worst = computed = passed = 0
while True:
    before = time.monotonic()
    if select.select([sys.stdin], [], [], 0.01)[0]:
        break
    worst = max(worst, time.monotonic() - before - 0.01)
    before, used = time.monotonic(), time.process_time()
    while time.process_time() - used < 0.001:
        pass
    passed += time.monotonic() - before
    computed += time.process_time() - used
print(worst, passed / computed if computed else 1)
"""


class Pace:
    """Measures how slow this machine is, and how long the block takes. Limits are for a quiet
    machine and are extended by what another process measures at the same time: how late it
    wakes from short sleeps, and how long it takes for its CPU time."""

    FACTOR = 4 if SANITIZED else 1

    def __enter__(self):
        self.watcher = subprocess.Popen([sys.executable, "-I", "-c", PACE], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.began = time.monotonic()
        return self

    def __exit__(self, *_):
        self.took = time.monotonic() - self.began
        self.worst, self.slowness = map(float, self.watcher.communicate()[0].split())

    def limit(self, seconds):
        """Converts seconds on a quiet machine to seconds here and now."""
        return seconds * self.FACTOR * max(1, self.slowness) + 20 * self.worst

    def check(self, test, seconds, what):
        """Fails `test` if the block took longer than `seconds` would be on a quiet machine."""
        test.assertLessEqual(self.took, self.limit(seconds),
                             "%s: at most %g s on a quiet machine; this one is %.1f times as slow "
                             "and wakes up to %.3f s late" %
                             (what, seconds, self.slowness, self.worst))


NOBODY = 65534
AS_NOBODY = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]


@functools.lru_cache(maxsize=None)
def has_walls(nobody=False):
    """Whether jobs of a client of ours get namespaces of their own; or of one of nobody's."""
    user = AS_NOBODY if nobody and os.geteuid() == 0 else []
    own_account = ["--user", "--map-current-user"] if user or os.geteuid() != 0 else []
    return subprocess.run(
        user + ["unshare", *own_account, "--ipc", "--pid", "--fork", "--mount-proc", "true"],
        stderr=subprocess.DEVNULL).returncode == 0


@functools.lru_cache(maxsize=None)
def others_may_execute():
    """Whether other accounts can execute the programs of this checkout."""
    return subprocess.run(
        AS_NOBODY + ["test", "-x", os.path.join(BIN, "sublet")]).returncode == 0


class Failed(Exception):
    """`sublet` ended with an error."""

    def __init__(self, args, status, out, err):
        super().__init__("%s: status %d: %s%s" % (" ".join(map(str, args)), status, out, err))
        self.status = status
        self.out = out
        self.err = err


class Client:
    next_uid = 200000 + os.getpid() * 100

    def __init__(self, pool, name, slots=1, monitor_sets=(), extra=(), prefix=(), scripted=True,
                 grants=None, nobodys=False):
        """grants: of the client, instead of the pool's folder and the checkout.
        nobodys: the prefix runs the client as the user nobody."""
        self.pool = pool
        self.name = name
        self.slots = slots
        self.state = os.path.join(pool.folder, "c-" + name)
        os.makedirs(self.state, exist_ok=True)
        self.control = os.path.join(pool.folder, "owner-" + name)
        self.extra = list(extra)
        self.prefix = list(prefix)  # a command that becomes the client by exec
        self.scripted = scripted  # else the monitor observes the real machine
        for setting in monitor_sets:
            self.extra += ["--monitor-set", setting]
        # With root, each slot has its own user id; concurrent test runs must not share
        # them.
        self.extra += ["--set", "slot_uids=%d" % Client.next_uid]
        Client.next_uid += slots
        if grants is None:
            # Jobs of tests leave marks in the pool's folder, and run programs of the checkout
            # and this Python.
            wanted = (pool.folder, ROOT, BIN, UNIT, sys.base_prefix)
            grants = [os.path.realpath(path) for path in wanted if os.path.exists(path)]
        self.extra += ["--set", "grants=" + ",".join(grants)]
        if not has_walls():
            self.extra += ["--set", "weak=true"]
        self.process = None
        self.programs = BIN
        if nobodys:
            os.chown(self.state, NOBODY, NOBODY)
            self.programs = pool.public_programs()

    def owner(self, presence):
        """presence: 'active' or 'away'."""
        temporary = self.control + ".new"
        with open(temporary, "w") as f:
            f.write(presence + "\n")
        os.rename(temporary, self.control)

    def server_arguments(self):
        return ["--server", self.pool.socket]

    def cgroups(self, attempt="*"):
        """The folders of this attempt, for example 7.2, or of all."""
        tag = hashlib.blake2b(os.path.realpath(self.state).encode(),
                              digest_size=32).hexdigest()[:12]
        return [folder for hierarchy in ("", "*/") for folder in
                glob.glob("/sys/fs/cgroup/%ssublet-c%s-%s" % (hierarchy, tag, attempt))]

    def remove_cgroups(self):
        """Removes the cgroups of killed attempts, which the client would do at its next
        start."""
        for folder in self.cgroups():
            try:
                os.rmdir(folder)
            except OSError:
                pass  # its last process is still ending

    def start(self):
        if not os.path.exists(self.control):
            self.owner("away")
        args = self.prefix + [os.path.join(self.programs, "sublet-client"), *self.server_arguments(),
                              "--name", self.name, "--slots", str(self.slots), "--state",
                              self.state] + self.extra
        if self.scripted:
            args += ["--monitor-control", self.control]
        log = open(os.path.join(self.pool.folder, "client-%s.log" % self.name), "a")
        self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        env=self.pool.environment())
        log.close()
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, deadline=PATIENCE):
        self.process.terminate()
        return self.process.wait(deadline)

    def attempts(self):
        folder = os.path.join(self.state, "attempts")
        try:
            return sorted(e for e in os.listdir(folder) if e[0].isdigit())
        except FileNotFoundError:
            return []

    def record(self, attempt):
        """The shepherd's record as a dictionary, or None while there is none."""
        try:
            with open(os.path.join(self.state, "attempts", attempt, "record")) as f:
                return dict(line.rstrip("\n").split(" ", 1) for line in f if " " in line)
        except FileNotFoundError:
            return None

    def running(self):
        """The attempt whose program runs here, for example 7.2, or None."""
        for attempt in self.attempts():
            folder = os.path.join(self.state, "attempts", attempt)
            if os.path.exists(folder + "/record") and not os.path.exists(folder + "/exit"):
                return attempt
        return None

    def monitor_pids(self):
        asked = set(processes_naming("--print-settings"))  # whether it takes its settings
        return [pid for pid in processes_naming(os.path.join(self.state, "monitor.sock"))
                if pid not in asked]


class Saver:
    """The job saver.c: counts until asked to finish, and records what it does."""

    def __init__(self, pool):
        self.pool = pool
        self.folder = os.path.join(pool.folder, "saver")
        os.makedirs(self.folder)
        self.ledger = os.path.join(self.folder, "ledger")
        open(self.ledger, "w").close()
        os.chmod(self.ledger, 0o666)

    def submit(self, save_ms, step, *options):
        return self.pool.submit("--name", "saver", "--output", "out", *options, "--",
                                os.path.join(UNIT, "saver"), self.folder, str(save_ms), step)[0]

    def said(self, what):
        """(attempt, count) of every record of `what`: start, save or done."""
        with open(self.ledger) as f:
            lines = [line.split() for line in f if line.endswith("\n")]
        return [(int(attempt), int(count)) for word, attempt, count in lines if word == what]

    def wait_said(self, what, times=1):
        wait_for(lambda: len(self.said(what)) >= times, "the job's %s number %d\n%s" %
                 (what, times, self.pool.all_logs()))
        return self.said(what)

    def finish(self):
        open(os.path.join(self.folder, "finish"), "w").close()


class Pool:
    """A server and clients; a context manager."""

    def __init__(self, server_sets=()):
        self.folder = tempfile.mkdtemp(prefix="sl-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.state = os.path.join(self.folder, "server")
        self.socket = os.path.join(self.folder, "run", "server.sock")
        self.server_sets = list(server_sets)
        self.server_prefix = []  # a command that becomes the server by exec
        self.supervisor = None
        self.clients = {}
        self.patient = False  # whether commands wait for a server that is being restarted

    def environment(self):
        env = dict(os.environ)
        env["SUBLET_SERVER"] = self.socket
        env["HOME"] = self.folder
        return env

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None and os.environ.get("SUBLET_TEST_KEEP"):
            print("kept: " + self.folder)
        self.close()
        return False

    # -- the server ---------------------------------------------------------

    def start_server(self, sets=(), wait=True):
        args = self.server_prefix + [os.path.join(BIN, "sublet-server"), "--state", self.state,
                                     "--socket", self.socket]
        for setting in list(self.server_sets) + list(sets):
            args += ["--set", setting]
        log = open(os.path.join(self.folder, "server.log"), "a")
        self.supervisor = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        if wait:
            self.wait_serving()
        return self

    def wait_serving(self, deadline=None):
        wait_for(self.about, "the server to serve\n" + self.log("server"), deadline)
        self.patient = False

    def about(self):
        """The output of `sublet about`, or None while the server does not answer."""
        try:
            return self.sublet("about")
        except Failed:
            return None

    def server_pid(self):
        return int(self.about()["server_pid"])

    def kill_server(self):
        """Kills only the server process; the supervisor restarts it."""
        self.patient = True
        for pid in children(self.supervisor.pid):
            kill(pid)

    def kill_supervisor(self):
        self.patient = False
        pids = children(self.supervisor.pid)
        self.supervisor.kill()
        self.supervisor.wait()
        for pid in pids:
            kill(pid)
            wait_for(lambda: not alive(pid), "the server to die")

    def stop_server(self, deadline=PATIENCE):
        self.patient = False
        self.supervisor.terminate()
        return self.supervisor.wait(deadline)

    # -- workstations -------------------------------------------------------

    def client(self, name, **options):
        client = Client(self, name, **options)
        self.clients[name] = client
        return client

    def kill_shepherds(self):
        for pid in self.processes():
            try:
                if os.path.basename(os.readlink("/proc/%d/exe" % pid)) == "sublet-shepherd":
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has ended

    def wait_machines(self, count, state="idle"):
        wait_for(lambda: sum(m["state"] == state for m in self.machines()) >= count,
                 "%d machines to be %s\n%s" % (count, state, self.all_logs()))

    def machines(self):
        return self.ask("machines")["machines"]

    def public(self, program):
        """A copy of one of our programs that every user can execute, because the checkout
        may be inaccessible to them."""
        folder = os.path.join(self.folder, "programs")
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o755)
        copy = os.path.join(folder, os.path.basename(program))
        if not os.path.exists(copy):
            shutil.copy(program, copy)
            os.chmod(copy, 0o755)
        return copy

    def public_programs(self):
        """The folder of a workstation's programs, where every user can execute them."""
        if others_may_execute():
            return BIN
        return os.path.dirname([self.public(os.path.join(BIN, name)) for name in (
            "sublet-client", "sublet-loadmon", "sublet-shepherd")][0])

    # -- the command --------------------------------------------------------

    def run(self, *args, cwd=None, stdin=None, deadline=None):
        """Runs `sublet ARGS`; returns (status, stdout, stderr)."""
        done = subprocess.run([os.path.join(BIN, "sublet")] + [str(a) for a in args],
                              cwd=cwd or self.folder, env=self.environment(), text=True,
                              stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=deadline or 2 * PATIENCE)
        return done.returncode, done.stdout, done.stderr

    def sublet(self, *args, cwd=None, deadline=None, check=True):
        """Runs `sublet ARGS --json` and returns what it printed."""
        words = list(args)
        at = words.index("--") if "--" in words else len(words)
        words.insert(at, "--json")
        status, out, err = self.run(*words, cwd=cwd, deadline=deadline)
        if check and status != 0:
            raise Failed(["sublet"] + words, status, out, err)
        return json.loads(out) if out.strip() else {}

    def ask(self, *args, **options):
        """Like sublet(), but repeats what no server has heard, if patient: on a busy machine a
        restart takes longer than the command waits for it."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self.sublet(*args, **options)
            except Failed as failed:
                if not self.patient or '"server.down"' not in failed.err or time.monotonic() > end:
                    raise

    def submit(self, *args, cwd=None):
        """Runs `sublet submit`; returns the ids of the jobs."""
        jobs = self.ask("submit", *args, cwd=cwd)["jobs"]
        return list(range(jobs["first"], jobs["first"] + jobs["count"]))

    def job(self, job):
        return self.ask("show", job)

    def attempts(self, job):
        """Those that no machine refused: after an eviction the server may send the next one to the
        same machine before it hears that its owner is back."""
        return [a for a in self.job(job)["attempt_list"] if a["ended"] != "refused"]

    def job_state(self, job):
        return self.job(job)["state"]

    def wait_state(self, job, states, deadline=None):
        if isinstance(states, str):
            states = [states]
        try:
            wait_for(lambda: self.job_state(job) in states,
                     "job %d to be %s" % (job, " or ".join(states)), deadline)
        except Timeout as timeout:
            raise Timeout("%s\n%s\n%s" % (timeout, json.dumps(self.job(job), indent=1),
                                          self.all_logs()))
        return self.job(job)

    def output(self, job):
        """A finished job, and all that it printed: stderr before stdout."""
        details = self.wait_state(job, ["done", "failed"])
        target = os.path.join(self.folder, "out-%d" % job)
        self.run("fetch", job, "--into", target)
        texts = []
        for name in sorted(os.listdir(target)) if os.path.isdir(target) else []:
            with open(os.path.join(target, name)) as f:
                texts.append(f.read())
        return details, "".join(texts)

    # -- the end ------------------------------------------------------------

    def log(self, name):
        try:
            with open(os.path.join(self.folder, name + ".log"), errors="replace") as f:
                return "--- %s\n%s" % (name, "".join(f.readlines()[-60:]))
        except FileNotFoundError:
            return ""

    def all_logs(self):
        return "\n".join([self.log("server")] + [self.log("client-" + n) for n in self.clients])

    def processes(self):
        """All processes that still run for this pool, including jobs' grandchildren."""
        return processes_naming(self.folder + "/", ("cmdline", "environ"))

    def close(self):
        for client in self.clients.values():
            if client.process and client.process.poll() is None:
                client.process.kill()
                client.process.wait()
        if self.supervisor and self.supervisor.poll() is None:
            self.kill_supervisor()
        end = time.monotonic() + 20
        while self.processes() and time.monotonic() < end:
            for pid in self.processes():
                kill(pid, signal.SIGCONT)
                kill(pid)
            time.sleep(0.02)
        for client in self.clients.values():
            client.remove_cgroups()
        if not os.environ.get("SUBLET_TEST_KEEP"):
            # Not by Python: it fails on deep trees, and hides why the test did.
            subprocess.run(["rm", "-rf", "--", self.folder], stderr=subprocess.DEVNULL)


def landlock():
    """The version of the kernel's Landlock; 6 keeps jobs from signalling others. 0: none."""
    create_ruleset, ask_version = 444, 1
    call = ctypes.CDLL(None).syscall
    return max(0, call(create_ruleset, None, ctypes.c_size_t(0), ask_version))


def without_calls(*refused):
    """Words before a command that runs it where the kernel refuses these system calls, such as
    "mount=EPERM" (security/without_calls.py)."""
    return ["python3", "-B", os.path.join(ROOT, "test", "security", "without_calls.py"), *refused,
            "--"]


def run_as_nobody(case, path, test, environment={}):
    """Runs that test of the file once more as an ordinary user, with these variables. Only for
    root."""
    with Pool() as pool:
        os.chown(pool.folder, NOBODY, NOBODY)
        if not others_may_execute():
            case.skipTest("other accounts cannot execute the programs of this checkout")
        done = subprocess.run(
            AS_NOBODY + [sys.executable, "-B", os.path.abspath(path), test], text=True,
            env={**os.environ, "HOME": pool.folder, "TMPDIR": pool.folder, **environment},
            cwd=pool.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        case.assertEqual(done.returncode, 0, done.stdout)
        case.assertNotIn("skipped", done.stdout)


def pool_of_class(case):
    """For setUpClass: a pool with one idle machine, closed after the tests of the class."""
    pool = Pool()
    case.addClassCleanup(pool.close)
    pool.start_server()
    pool.client("curly").start()
    pool.wait_machines(1)
    return pool
