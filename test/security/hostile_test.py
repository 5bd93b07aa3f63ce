"""Hostile bytes sent to the server's socket by a permitted user: the connections are
closed; the server survives, becomes idle again and stays small. If it crashes anyway, it is
back at once, nothing acknowledged is lost, and running jobs are not affected."""

import fcntl
import os
import random
import signal
import socket
import struct
import sys
import termios
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import giop
import harness

KEY = b"JobScheduler"
MEMORY = 400 << 20  # bytes resident, far below the server's own limit


def request(operation, body=b"", identifier=1, flags=1):
    """A request to the Job Scheduler."""
    return giop.request(KEY, operation, body, identifier, flags)


def fragment(identifier, body, flags=1):
    return giop.message(7, struct.pack("<I", identifier) + body, flags=flags)


def cancel(identifier):
    return giop.message(2, struct.pack("<I", identifier))


def unread(s):
    """How many of the octets sent the peer has not read yet."""
    return struct.unpack("i", fcntl.ioctl(s, termios.TIOCOUTQ, b"\0" * 4))[0]


class Hostile(unittest.TestCase):
    def send(self, pool, data):
        """Sends; returns whether the server closes the connection."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(pool.socket)
            try:
                s.sendall(data)
                while s.recv(4096):
                    pass
                return True
            except (BrokenPipeError, ConnectionResetError):
                return True
            except socket.timeout:
                return False

    def check_well(self, pool, pid):
        self.assertEqual(pool.server_pid(), pid, "the same server lives\n" + pool.log("server"))
        with open("/proc/%d/status" % pid) as status:
            resident = int(next(l for l in status if l.startswith("VmRSS")).split()[1]) << 10
        if "asan" not in harness.BIN:
            self.assertLess(resident, MEMORY)

        def at_rest():
            before = harness.cpu_ticks(pid)
            time.sleep(1)
            return harness.cpu_ticks(pid) - before <= 10
        harness.wait_for(at_rest, "the server to be at rest", 30)

    def test_the_three_killers(self):
        with harness.Pool() as pool:
            pool.start_server()
            pid = pool.server_pid()
            killers = [
                giop.message(0, b"", size=0xfffffff4),
                request(b"about", flags=3) + fragment(1, b"", flags=3) +
                giop.message(7, b"", size=0),
                request(b"list", flags=3) + cancel(1),
                request(b"list", flags=3)[:40],
            ]
            for _ in range(5):
                for killer in killers:
                    self.assertTrue(self.send(pool, killer), "the server closes first")
            self.check_well(pool, pid)

    def test_a_message_in_two_pieces(self):
        """Cut anywhere: the server reads the first piece before the second is sent."""
        with harness.Pool() as pool:
            pool.start_server()
            message = request(b"about")
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(harness.PATIENCE)
                s.connect(pool.socket)
                for cut in range(1, len(message)):
                    s.sendall(message[:cut])
                    harness.wait_for(lambda: not unread(s), "the server to read %d octets" % cut)
                    s.sendall(message[cut:])
                    heard = b""
                    while not list(giop.messages(heard)):
                        more = s.recv(65536)
                        self.assertTrue(more, "closed after %d octets" % cut)
                        heard += more
                    self.assertEqual((heard[7], struct.unpack_from("<I", heard, 16)[0]),
                                     (giop.REPLY, 0), cut)

    def test_mutated_messages(self):
        with harness.Pool() as pool:
            pool.start_server()
            pid = pool.server_pid()
            seeds = [request(b"about"), request(b"list", b"\0" * 60), request(b"submit", b"\1" * 80),
                     giop.message(3, struct.pack("<IH2xI", 1, 0, len(KEY)) + KEY), cancel(7),
                     request(b"list", flags=3) + fragment(1, b"x" * 40),
                     giop.message(5, b""), giop.message(6, b"")]
            rng = random.Random(20)
            sent = 0
            while sent < 100000:
                batch = []
                for _ in range(rng.randint(1, 40)):
                    message = bytearray(rng.choice(seeds))
                    for _ in range(rng.choice((0, 1, 1, 2, 8))):
                        message[rng.randrange(len(message))] = rng.randrange(256)
                    if rng.random() < 0.1:
                        message = message[:rng.randrange(len(message))]
                    batch.append(bytes(message))
                sent += len(batch)
                with socket.socket(socket.AF_UNIX) as s:
                    # For as long connect() waits for a place in the server's queue.
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                                 struct.pack("ll", int(harness.PATIENCE), 0))
                    try:
                        s.connect(pool.socket)
                        s.settimeout(harness.PATIENCE)
                        s.sendall(b"".join(batch))
                    except (BrokenPipeError, ConnectionResetError):
                        pass
                    except ConnectionRefusedError:
                        self.fail("the server is gone\n" + pool.log("server"))
            self.check_well(pool, pid)

    def test_back_after_a_crash(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("--name", "long", "--", "sh", "-c", "while :; do sleep 1; done")[0]
            waiting = pool.submit("--name", "queued", "--", "true")[0]
            pool.wait_state(job, "running")
            record = curly.record(curly.attempts()[0])
            pid = pool.server_pid()
            with harness.Pace() as pace:
                harness.kill(pid, signal.SIGILL)  # sanitizers report SIGSEGV
                harness.wait_for(lambda: (pool.about() or {}).get("server_pid") not in
                                 (None, str(pid)), "the server to be back\n" + pool.log("server"))
            pace.check(self, 2, "a killed server is back")
            self.assertEqual(pool.job_state(waiting), "waiting")
            pool.wait_machines(1, "busy")
            harness.wait_for(lambda: pool.machines()[0]["running"], "the adoption")
            self.assertEqual(len(pool.job(job)["attempt_list"]), 1)
            self.assertTrue(harness.alive(int(record["job_pid"])), "the same process runs on")
            with harness.Pace() as pace:
                pool.sublet("rm", job)
                harness.wait_for(lambda: not harness.alive(int(record["job_pid"])),
                                 "the removed job to be gone\n" + pool.all_logs())
            pace.check(self, 2, "a removed job is gone")
            pool.wait_state(waiting, "done")

    def test_a_server_that_keeps_dying_gives_up(self):
        with harness.Pool() as pool:
            pool.start_server()
            # Only servers are killed: a sanitizer has a child of its own at the end.
            for deaths in range(5):
                harness.wait_for(lambda: harness.children(pool.supervisor.pid), "the next server")
                for child in harness.children(pool.supervisor.pid):
                    harness.kill(child)
                harness.wait_for(lambda: pool.log("server").count("the server died of") > deaths,
                                 "the server's death to be noticed")
            self.assertEqual(pool.supervisor.wait(harness.PATIENCE), 1, pool.log("server"))
            self.assertIn("giving up", pool.log("server"))

    def test_a_second_server_is_refused(self):
        with harness.Pool() as pool:
            pool.start_server()
            first = pool.supervisor
            pid = pool.server_pid()
            pool.start_server(wait=False)
            second, pool.supervisor = pool.supervisor, first
            self.assertEqual(second.wait(30), 1)
            self.assertIn(str(pid), pool.log("server"))
            self.assertEqual(pool.server_pid(), pid)


if __name__ == "__main__":
    unittest.main()
