"""A job that tries whatever it can think of against the owner, his session, the daemons and other
jobs: what each try is answered, with a client run by root and without root, and that nothing is
left of it and the owner's program is untouched. (Its bounds: bounds_test.py, low_disk_test.py, low_memory_test.py; what it leaves in
files: isolation_test.py; single system calls: client/shepherd/run_test.cc.)"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

# Of the environment: what root has prepared.
SESSION = "SUBLET_TEST_SESSION"
# What the job runs. It prints one line of JSON: the name of each try and the error, or "done".
TRIES = r'''
import ctypes, errno, json, os, signal, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
session, daemons, mark = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
answers = {}

def attempt(name, act):
    try:
        answers[name] = "done" if act() is not False else "no"
    except OSError as error:
        answers[name] = errno.errorcode.get(error.errno, str(error.errno))

def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")

def connect(address):
    with socket.socket(socket.AF_UNIX) as one: one.connect(address)

def signal_all(which):
    """Whether any process but its own took it."""
    taken = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if pid == os.getpid(): continue
        try:
            os.kill(pid, which)
            taken.append(pid)
        except OSError:
            pass
    return len(taken) > 0

def environments():
    """Whether that of any process but its own can be read."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid(): continue
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if f.read(1): return True
        except OSError:
            pass
    return False

attempt("stop every process", lambda: signal_all(signal.SIGSTOP))
attempt("kill every process", lambda: signal_all(signal.SIGKILL))
guards = {"init": 1, **daemons}
for which in signal.SIGSTOP, signal.SIGKILL:
    for name, pid in guards.items():
        attempt("%s to the %s" % (which.name, name), lambda: os.kill(pid, which))
attempt("trace a daemon", lambda: call(101, 16, daemons["client"], 0, 0))  # ptrace, PTRACE_ATTACH
attempt("trace the owner's program", lambda: call(101, 16, daemons["owner's program"], 0, 0))
attempt("memory of a daemon", lambda: open("/proc/%d/mem" % daemons["client"], "rb").read(1))
attempt("environments", environments)
attempt("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close())
attempt("abstract socket of a session", lambda: connect("\0" + session["abstract"]))
for name in "display in /tmp", "session's bus", "Wayland's socket", "system bus":
    attempt(name, lambda: connect(session[name]))
attempt("keyring", lambda: call(250, 0, -3, 0))  # keyctl, KEYCTL_GET_KEYRING_ID
attempt("a new key", lambda: call(248, b"user", b"sublet-test", b"x", 1, -4))  # add_key
attempt("user namespace", lambda: call(272, 0x10000000))
attempt("mount", lambda: call(165, b"none", b"/mnt", b"tmpfs", 0, 0))
attempt("new privileges", lambda: "NoNewPrivs:\t0" in open("/proc/self/status").read())
attempt("set-user-id program", lambda: subprocess.run(
    [session["set-user-id program"], "-u"], capture_output=True).stdout == b"0\n")
for program in (["crontab", "-"], ["at", "now"], ["systemd-run", "--user", "true"],
                ["su", "-c", "true"]):
    attempt(program[0], lambda: subprocess.run(
        program, input=b"* * * * * true\n", stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL).returncode == 0)
print(json.dumps(answers), flush=True)

# What is to outlive it: in sessions of their own, not its children, deaf to every signal.
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                try: signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError): pass
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            del os.environ["SUBLET_STATUS"]
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", mark])
        os._exit(0)
for _ in range(20): os.wait()
'''


class HostileJobs(unittest.TestCase):
    # Why a try is in vain: not there, not permitted, not to be found.
    VAIN = {"EPERM", "EACCES", "ENOENT", "ESRCH", "ECONNREFUSED", "no"}
    # Where jobs have no walls these succeed: docs/guide-owner.md says so. (crontab, at: if
    # installed.)
    OPEN_WITHOUT_WALLS = {"display in /tmp", "session's bus", "Wayland's socket", "system bus"}
    OPEN_WITHOUT_ROOT = {"environments", "crontab", "at", "systemd-run"}

    def listen(self, address):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(address)
        listener.listen(20)
        if not address.startswith("\0"):
            self.addCleanup(os.unlink, address)
            os.chmod(address, 0o777)
        return address

    def folder(self, parent):
        """A new one there, which everybody can traverse; in /tmp if only root may make it."""
        if not os.access(parent, os.W_OK):
            parent = "/tmp"
        folder = tempfile.mkdtemp(prefix="sublet-test-", dir=parent)
        os.chmod(folder, 0o755)
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def owners_session(self):
        """Where an owner's programs listen, and a program that makes whoever runs it root; what
        root has prepared, if this test was started by its other form."""
        if SESSION in os.environ:
            return json.loads(os.environ[SESSION])
        if os.geteuid() == 0 and not os.path.isdir("/run/dbus"):
            os.mkdir("/run/dbus")
            self.addCleanup(os.rmdir, "/run/dbus")
        users, system = self.folder("/run/user"), self.folder("/run/dbus")
        granted = self.folder("/tmp")
        program = shutil.copy("/usr/bin/id", granted)
        os.chmod(program, 0o4755)
        return {"abstract": self.listen("\0sublet-test-%d" % os.getpid())[1:],
                "display in /tmp": self.listen("/tmp/sublet-test-X%d" % os.getpid()),
                "session's bus": self.listen(users + "/bus"),
                "Wayland's socket": self.listen(users + "/wayland-0"),
                "system bus": self.listen(system + "/system_bus_socket"),
                "set-user-id program": program, "granted": granted}

    def owners_program(self):
        program = subprocess.Popen(["sleep", "600"])
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program.pid

    def check_untouched(self, pid):
        with open("/proc/%d/status" % pid) as f:
            facts = dict(line.rstrip("\n").split(":\t", 1) for line in f)
        self.assertEqual((facts["State"][0], facts["TracerPid"]), ("S", "0"))

    def try_all(self, walls, **options):
        session = self.owners_session()
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly", grants=[session["granted"]], **options).start()
            pool.wait_machines(1)
            daemons = {"client": curly.process.pid, "monitor": curly.monitor_pids()[0],
                       "server": pool.server_pid(), "owner's program": self.owners_program()}
            mark = "sublet-test-left-%d" % os.getpid()
            details, text = pool.output(pool.submit(
                "--", "python3", "-c", TRIES, json.dumps(session), json.dumps(daemons), mark)[0])
            self.assertEqual(details["state"], "done", (details, text))
            self.judge(json.loads(text), walls)
            harness.wait_for(lambda: walls or not harness.processes_naming(mark), "what it left")
            self.assertEqual(harness.processes_naming(mark), [])
            for pid in daemons.values():
                self.assertTrue(harness.alive(pid))
            self.check_untouched(daemons["owner's program"])
            harness.wait_for(lambda: not curly.attempts(), "the attempt to be forgotten")
            # The machine goes on.
            self.assertEqual(pool.wait_state(pool.submit("--", "true")[0],
                                             ["done", "failed"])["state"], "done")

    @unittest.skipUnless(os.geteuid() == 0 or harness.has_walls() or harness.landlock() >= 6,
                         "needs root, namespaces or Linux 6.12")
    def test_what_each_try_is_answered(self):
        self.try_all(harness.has_walls())

    @unittest.skipUnless(os.geteuid() == 0 or harness.landlock() >= 6, "needs root or Linux 6.12")
    def test_without_walls(self):
        """In a container, say, that refuses namespaces: the weaker of what the guide promises."""
        self.try_all(False, prefix=harness.without_calls("ipc namespace=EPERM"),
                     extra=["--set", "weak=true"])

    def judge(self, answers, walls):
        may = set()
        if not walls:
            may |= self.OPEN_WITHOUT_WALLS
            if os.geteuid() != 0:
                may |= self.OPEN_WITHOUT_ROOT
        if harness.landlock() < 6:
            may.add("abstract socket of a session")
            if os.geteuid() != 0:  # the first of its processes takes them, and is not moved
                may |= {"SIGSTOP to the init", "SIGKILL to the init", "stop every process",
                        "kill every process"}
        self.assertGreater(len(answers), 20, answers)
        wrong = {name: answer for name, answer in answers.items()
                 if answer not in self.VAIN and not (answer == "done" and name in may)}
        self.assertEqual(wrong, {}, answers)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_without_root(self):
        """The tests above, once more as an ordinary user."""
        tests = ["test_what_each_try_is_answered"] if harness.has_walls(nobody=True) else []
        if harness.landlock() >= 6:
            tests.append("test_without_walls")
        if not tests:
            self.skipTest("needs namespaces, or Linux 6.12")
        session = {SESSION: json.dumps(self.owners_session())}
        for test in tests:
            harness.run_as_nobody(self, __file__, "HostileJobs." + test, session)


if __name__ == "__main__":
    unittest.main()
