"""Daemons under a manager (this test implements systemd's notify protocol): which process
sends ready and keep-alive, and when; and that jobs survive a restart of the client."""

import ctypes
import os
import select
import signal
import socket
import struct
import sys
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for


class Manager:
    """A datagram socket at `address`; records (pid, words) of each message."""

    def __init__(self, address):
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind("\0" + address[1:] if address[0] == "@" else address)
        self.heard = []

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.socket.close()

    def listen(self):
        while select.select([self.socket], [], [], 0)[0]:
            text, more, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(12))
            pid = struct.unpack("3i", more[0][2])[0]
            self.heard.append((pid, text.decode().split("\n")))
        return self.heard

    def said(self, word, pid=None):
        return [p for p, words in self.listen() if word in words and pid in (None, p)]

    def wait(self, word, pid, times=1):
        wait_for(lambda: len(self.said(word, pid)) >= times,
                 "%d times %s of %d; heard %s" % (times, word, pid, self.heard))

    def environment(self, watchdog_s=1):
        return mock.patch.dict(os.environ, NOTIFY_SOCKET=self.address,
                               WATCHDOG_USEC=str(watchdog_s * 1000000))


class HungThread:
    """Stops one thread of a process, as a hang would."""

    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, tid):
        self.tid = tid

    def ptrace(self, request):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(request, self.tid, None, None) != 0:
            raise unittest.SkipTest("ptrace: " + os.strerror(ctypes.get_errno()))

    def __enter__(self):
        self.ptrace(self.SEIZE)
        self.ptrace(self.INTERRUPT)
        os.waitpid(self.tid, self.WALL)

    def __exit__(self, kind, value, trace):
        self.ptrace(self.DETACH)


def environment_of(pid):
    with open("/proc/%d/environ" % pid, "rb") as f:
        return f.read()


class Service(unittest.TestCase):
    def assert_unspoken_for(self, pids):
        """These processes do not inherit the variables of the notify protocol."""
        for pid in pids:
            for name in (b"NOTIFY_SOCKET", b"WATCHDOG_USEC"):
                self.assertNotIn(name, environment_of(pid), pid)

    def test_server(self):
        with harness.Pool() as pool, Manager(os.path.join(pool.folder, "notify")) as manager:
            with manager.environment():
                pool.start_server(wait=False)
            supervisor = pool.supervisor.pid
            manager.wait("READY=1", supervisor)
            # Ready means serving.
            self.assertIsNotNone(pool.about())
            child = pool.server_pid()
            self.assert_unspoken_for([child])
            manager.wait("WATCHDOG=1", supervisor, 3)
            # The supervisor restarts its child; the service stays ready and alive.
            harness.kill(child)
            wait_for(lambda: pool.about() and pool.server_pid() != child, "another server")
            manager.wait("WATCHDOG=1", supervisor, len(manager.said("WATCHDOG=1")) + 2)
            self.assertEqual(len(manager.said("READY=1")), 1)
            self.assertEqual({p for p, _ in manager.listen()}, {supervisor})
            self.assertEqual(pool.stop_server(), 0)

    def test_server_that_cannot_start(self):
        with harness.Pool() as pool, Manager(os.path.join(pool.folder, "notify")) as manager:
            with manager.environment():
                pool.start_server(sets=["server.listen=127.0.0.1:9"], wait=False)
            self.assertEqual(pool.supervisor.wait(harness.PATIENCE), 1)
            self.assertEqual(manager.listen(), [])

    def test_client(self):
        name = "@sublet-service-test-%d" % os.getpid()
        with harness.Pool() as pool, Manager(name) as manager:
            # Ready without a server, which may be down for long.
            with manager.environment():
                curly = pool.client("curly").start()
            pid = curly.process.pid
            manager.wait("READY=1", pid)
            manager.wait("WATCHDOG=1", pid, 3)
            pool.start_server()
            pool.wait_machines(1)
            job = pool.submit("--", "sleep", "1000")[0]
            pool.wait_state(job, "running")
            others = [p for p in harness.processes_naming(curly.state) if p != pid]
            self.assertGreaterEqual(len(others), 2)  # monitor and shepherd
            self.assert_unspoken_for(others)
            self.assertEqual({p for p, _ in manager.listen()}, {pid})
            self.assertEqual(len(manager.said("READY=1")), 1)

    def test_hung_client_says_nothing(self):
        """Keep-alives are sent by the main loop."""
        with harness.Pool() as pool, Manager(os.path.join(pool.folder, "notify")) as manager:
            with manager.environment():
                curly = pool.client("curly").start()
            pid = curly.process.pid
            manager.wait("WATCHDOG=1", pid, 2)
            with HungThread(pid):
                count = len(manager.said("WATCHDOG=1"))
                # The other threads continue.
                pool.start_server()
                wait_for(pool.machines, "the client to register")
                # Longer than the watchdog's period; nothing else to wait for.
                time.sleep(1.5)
                self.assertEqual(len(manager.said("WATCHDOG=1")), count)
            manager.wait("WATCHDOG=1", pid, count + 2)

    @unittest.skipUnless(os.geteuid() == 0, "needs root: a /run of its own")
    def test_client_without_a_pool_finds_its_machines_own(self):
        with harness.Pool() as pool:
            run = os.path.join(pool.folder, "run")
            pool.socket = os.path.join(run, "sublet", "server.sock")
            os.makedirs(run)
            curly = pool.client("curly", prefix=["unshare", "--mount", "sh", "-c",
                                                 'mount --bind %s /run && exec "$@"' % run, "sh"])
            curly.server_arguments = lambda: []
            curly.start()
            wait_for(lambda: "has no server at /run/sublet/server.sock" in
                     pool.log("client-curly"), "the client's word")
            pool.start_server()
            pool.wait_machines(1)
            job = pool.submit("--", "true")[0]
            self.assertEqual(pool.wait_state(job, ["done", "failed"])["state"], "done")

    def test_restart_keeps_jobs(self):
        """SIGHUP is what the unit sends for a restart (RestartKillSignal)."""
        # Under nohup SIGHUP is ignored, and the client would inherit that.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            saver = harness.Saver(pool)
            job = saver.submit(0, "nap")
            saver.wait_said("start")
            shepherd = int(curly.record("%d.1" % job)["shepherd_pid"])
            curly.process.send_signal(signal.SIGHUP)
            self.assertEqual(curly.process.wait(harness.PATIENCE), -signal.SIGHUP)
            self.assertTrue(harness.alive(shepherd))
            curly.start()
            saver.finish()
            done = pool.wait_state(job, ["done", "failed", "held"])
            self.assertEqual((done["state"], done["attempts"]), ("done", 1), done)


if __name__ == "__main__":
    unittest.main()
