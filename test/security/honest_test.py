"""Programs that do what programs do run as a job: processes and shared memory of Python,
pseudo-terminals, a compiler, OpenMPI on one machine, sockets, limits of their own. As root:
within the walls; without root: in the Landlock domain and with the filter of system calls."""

import os
import shutil
import stat
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

PYTHON = {
    "multiprocessing": ("""
        import multiprocessing
        with multiprocessing.Pool(4) as pool:
            print(sum(pool.map(abs, range(100))))
        queue = multiprocessing.Queue()
        other = multiprocessing.Process(target=queue.put, args=(7,))
        other.start()
        print(queue.get())
        other.join()
        """, "4950\n7\n"),
    "shared memory": ("""
        from multiprocessing import shared_memory
        one = shared_memory.SharedMemory(create=True, size=10**6)
        two = shared_memory.SharedMemory(one.name)
        one.buf[9] = 3
        print(two.buf[9])
        two.close()
        one.close()
        one.unlink()
        """, "3\n"),
    "a pseudo-terminal": ("""
        import os, pty
        pid, terminal = pty.fork()
        if pid == 0:
            os.execlp("sh", "sh", "-c", "test -t 0 && tty | cut -c 1-9")
        print(os.read(terminal, 100))
        os.waitpid(pid, 0)
        """, "b'/dev/pts/\\r\\n'\n"),
    "sockets": ("""
        import socket
        for family, name in (socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_UNIX, "\\0mine"), \\
                (socket.AF_UNIX, "/tmp/mine-%d" % __import__("os").getpid()):
            with socket.socket(family) as listener, socket.socket(family) as caller:
                listener.bind(name)
                listener.listen()
                caller.connect(listener.getsockname())
                print("connected")
        """, "connected\n" * 3),
    "files moved between folders": ("""
        import os, tempfile
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            open(one + "/file", "w").close()
            os.rename(one + "/file", two + "/file")
            os.link(two + "/file", one + "/link")
            print(os.stat(one + "/link").st_nlink)
        """, "2\n"),
    "limits of its own": ("""
        import os, resource, signal
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.sched_setaffinity(0, os.sched_getaffinity(0))
        os.nice(1)
        child = os.fork()
        if child == 0:
            signal.pause()
        os.kill(child, signal.SIGTERM)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), resource.getrlimit(
            resource.RLIMIT_NOFILE))
        """, "-15 (100, 100)\n"),
    "facts about the machine": ("""
        import os
        for path in "/proc/self/stat", "/proc/meminfo", "/proc/cpuinfo", "/etc/passwd", \\
                "/sys/devices/system/cpu/online":
            with open(path) as file:
                assert file.read(1), path
        os.urandom(8)
        open(os.devnull, "w").write("x")
        print("read")
        """, "read\n"),
}

RING = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, size, length = 4000000;
  char* text = calloc(1, length);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 0; round < 10; ++round) {
    MPI_Sendrecv_replace(text, length, MPI_CHAR, (rank + 1) % size, 0, (rank + size - 1) % size, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++text[length - 1];
    int all = 0, one = text[length - 1];
    MPI_Reduce(&one, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && all == size * (round + 1)) printf("%d ranks: %d octets came back\\n", size, length);
  }
  MPI_Finalize();
}
"""


class Honest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pool = harness.pool_of_class(cls)

    def output(self, *command):
        details, text = self.pool.output(self.pool.submit("--", *command)[0])
        self.assertEqual(details["state"], "done", (details, text))
        return text

    def test_python(self):
        for name, (program, expected) in PYTHON.items():
            with self.subTest(name):
                text = self.output("python3", "-c", textwrap.dedent(program))
                self.assertEqual(text, expected)

    @unittest.skipUnless(shutil.which("cc"), "there is no compiler")
    def test_compiler(self):
        self.assertEqual(
            self.output("sh", "-c", "echo 'int main(void) { return 0; }' >a.c && "
                        "cc -O2 -o a a.c && ./a && echo compiled"), "compiled\n")

    @unittest.skipUnless(shutil.which("mpirun") and shutil.which("mpicc"),
                         "there is no OpenMPI: packages openmpi-bin, libopenmpi-dev")
    def test_openmpi(self):
        """Ranks that send each other messages, short and long: through shared memory."""
        text = self.output("sh", "-c", 'printf %s "$0" >ring.c && mpicc -o ring ring.c && '
                           "mpirun --oversubscribe -n 2 ./ring", RING)
        self.assertEqual(text, "2 ranks: 4000000 octets came back\n" * 10)

    @unittest.skipUnless(os.geteuid() == 0, "needs root: makes a device")
    def test_a_granted_device(self):
        """A stand-in for a GPU's: a device of every account's that a program opens by its name in
        /dev. With a client run by root and one of nobody's; not without the grant."""
        device = "/dev/sublet-test-%d" % os.getpid()
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 5))  # as /dev/zero
        self.addCleanup(os.unlink, device)
        os.chmod(device, 0o666)
        script = "head -c 3 %s | od -An -tx1" % device
        for prefix in [[], harness.AS_NOBODY]:
            if not harness.has_walls(nobody=bool(prefix)):
                continue
            for grants, expected in (([device], " 00 00 00\n"), ([], "")):
                with self.subTest(prefix=prefix, grants=grants), \
                        harness.Pool(["pool.administrators=nobody"]) as pool:
                    pool.start_server()
                    pool.client("curly", prefix=prefix, grants=grants, nobodys=bool(prefix)).start()
                    pool.wait_machines(1)
                    text = pool.output(pool.submit("--", "sh", "-c", script)[0])[1]
                    self.assertEqual(text.replace("head: cannot open '%s' for reading: No such "
                                                  "file or directory\n" % device, ""), expected)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_without_root(self):
        """The tests above, once more as an ordinary user."""
        tests = ["test_python"]
        if shutil.which("cc"):
            tests.append("test_compiler")
        if shutil.which("mpirun") and shutil.which("mpicc"):
            tests.append("test_openmpi")
        for test in tests:
            with self.subTest(test):
                harness.run_as_nobody(self, __file__, "Honest." + test)


if __name__ == "__main__":
    unittest.main()
