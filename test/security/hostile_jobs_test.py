"""A job that tries whatever it can think of against the owner, his session, the daemons and other
jobs: what each try is answered, with a client run by root and without root, and that nothing is
left of it. (Its bounds: bounds_test.py, low_disk_test.py, low_memory_test.py; what it leaves in
files: isolation_test.py; single system calls: client/shepherd/run_test.cc.)"""

import json
import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

# What the job runs. It prints one line of JSON: the name of each try and the error, or "done".
TRIES = r'''
import ctypes, errno, json, os, signal, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
abstract, display, bus, daemons, mark = sys.argv[1:6]
daemons = [int(pid) for pid in daemons.split(",")]
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
guards = {"init": 1, **dict(zip(("client", "monitor", "server"), daemons))}
for which in signal.SIGSTOP, signal.SIGKILL:
    for name, pid in guards.items():
        attempt("%s to the %s" % (which.name, name), lambda: os.kill(pid, which))
attempt("trace a daemon", lambda: call(101, 16, daemons[0], 0, 0))  # ptrace, PTRACE_ATTACH
attempt("memory of a daemon", lambda: open("/proc/%d/mem" % daemons[0], "rb").read(1))
attempt("environments", environments)
attempt("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt("packet socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close())
attempt("abstract socket of a session", lambda: connect("\0" + abstract))
attempt("display in /tmp", lambda: connect(display))
attempt("socket in /run/user", lambda: connect(bus))
attempt("system bus", lambda: connect("/run/dbus/system_bus_socket"))
attempt("keyring", lambda: call(250, 0, -3, 0))
attempt("user namespace", lambda: call(272, 0x10000000))
attempt("mount", lambda: call(165, b"none", b"/mnt", b"tmpfs", 0, 0))
attempt("new privileges", lambda: "NoNewPrivs:\t0" in open("/proc/self/status").read())
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
    OPEN_WITHOUT_WALLS = {"display in /tmp", "socket in /run/user", "system bus"}
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

    def owners_session(self, pool):
        """Where an owner's programs listen."""
        abstract = self.listen("\0sublet-test-%d" % os.getpid())[1:]
        display = self.listen("/tmp/sublet-test-X%d" % os.getpid())
        users = "/run/user"
        if not os.access(users, os.W_OK):
            return abstract, display, display
        mine = os.path.join(users, "sublet-test-%d" % os.getpid())
        os.mkdir(mine, 0o755)
        self.addCleanup(os.rmdir, mine)
        return abstract, display, self.listen(os.path.join(mine, "bus"))

    @unittest.skipUnless(os.geteuid() == 0 or harness.has_walls() or harness.landlock() >= 6,
                         "needs root, namespaces or Linux 6.12")
    def test_what_each_try_is_answered(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            daemons = [curly.process.pid, curly.monitor_pids()[0], pool.server_pid()]
            mark = "sublet-test-left-%d" % os.getpid()
            details, text = pool.output(pool.submit(
                "--", "python3", "-c", TRIES, *self.owners_session(pool),
                ",".join(map(str, daemons)), mark)[0])
            self.assertEqual(details["state"], "done", details)
            self.judge(json.loads(text))
            self.assertEqual(harness.processes_naming(mark), [])
            for pid in daemons:
                self.assertTrue(harness.alive(pid))
            harness.wait_for(lambda: not curly.attempts(), "the attempt to be forgotten")
            # The machine goes on.
            self.assertEqual(pool.wait_state(pool.submit("--", "true")[0],
                                             ["done", "failed"])["state"], "done")

    def judge(self, answers):
        may = set()
        if not harness.has_walls():
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
        """The test above, once more as an ordinary user."""
        if not harness.has_walls(nobody=True) and harness.landlock() < 6:
            self.skipTest("needs namespaces, or Linux 6.12")
        harness.run_as_nobody(self, __file__, "HostileJobs.test_what_each_try_is_answered")


if __name__ == "__main__":
    unittest.main()
