"""What a job gets of a workstation if it asks for nothing: its memory, its processes; and what is
said of what it used."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness


MIB = 1 << 20
# 300 MiB in each way; then it waits to be ended.
WAYS_TO_MEMORY = {
    "mmap": "held = mmap.mmap(-1, 300 << 20, mmap.MAP_PRIVATE)\nfill(held)",
    "a shared mapping": "held = mmap.mmap(-1, 300 << 20)\nfill(held)",
    "System V shared memory": """
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        at = libc.shmat(libc.shmget(0, 300 << 20, 0o1600), None, 0)
        ctypes.memset(at, 1, 300 << 20)""",
    "a file in /dev/shm": "write(open('/dev/shm/sublet-test', 'wb'))",
    "a file in memory": "write(open(os.memfd_create('x'), 'wb'))",
}
TAKE = """
import ctypes, mmap, os, signal
def fill(held):
    for at in range(0, len(held), 4096): held[at] = 1
def write(file):
    for _ in range(300): file.write(b"x" * (1 << 20)); file.flush()
"""


def available_memory():
    with open("/proc/meminfo") as f:
        facts = dict(line.split(":") for line in f)
    return int(facts["MemAvailable"].split()[0]) * 1024


class Bounds(unittest.TestCase):
    def test_every_way_to_memory(self):
        before = available_memory()
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            # Without a cgroup a process's own memory and its /dev/shm are bounded by failing calls,
            # and what no process has mapped is not counted (docs/shepherd.md).
            counted = "memory limit is enforced per process" not in pool.log("client-curly")
            for name, program in WAYS_TO_MEMORY.items():
                with self.subTest(name):
                    job = pool.submit("--memory-limit", "64 MiB", "--", "python3", "-c", TAKE +
                                      textwrap.dedent(program) + "\nopen('has', 'w')\n"
                                      "signal.pause()")[0]
                    if not counted and name == "a file in memory":
                        has = os.path.join(curly.state, "attempts", "%d.1" % job, "work", "has")
                        harness.wait_for(lambda: os.path.exists(has), "the job to have it")
                        pool.sublet("rm", job)
                        continue
                    last = pool.wait_state(job, ["failed", "done"])["attempt_list"][-1]
                    if counted or name in ("a shared mapping", "System V shared memory"):
                        self.assertEqual(last["ended"], "over its limits", last)
                        self.assertIn("all of its memory limit (64 MiB)", last["reason"])
                    else:
                        self.assertEqual(last["exit_status"], 1, last)
            harness.wait_for(lambda: not curly.attempts(), "the last to be gone")
            # Half of what they had taken together: others use memory, too.
            harness.wait_for(lambda: available_memory() > before - 750 * MIB, "the memory")

    def test_page_cache(self):
        """Files much larger than the memory limit are written and read; nothing of it stays."""
        program = ("import os\n"
                   "for _ in range(2):\n"
                   "  with open('big', 'wb') as f:\n"
                   "    for _ in range(120): f.write(b'x' * (1 << 20))\n"
                   "  with open('big', 'rb') as f:\n"
                   "    while f.read(1 << 20): pass\n")
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("--memory-limit", "32 MiB", "--disk", "1 GiB", "--", "python3", "-c",
                              program)[0]
            details = pool.wait_state(job, ["done", "failed"])
            self.assertEqual(details["state"], "done", details)
            self.assertLess(details["attempt_list"][-1]["memory_peak"], 32 * MIB)
            harness.wait_for(lambda: not curly.attempts() and not os.listdir(
                os.path.join(curly.state, "trash")), "its files to be removed")
            harness.wait_for(lambda: not curly.cgroups("%d.1" % job), "its cgroups to be removed")

    # Zero means none: kept, set aside, waited for.
    MAY_BE_ZERO = {"memory_reserve", "disk_reserve", "input_cache", "checkpoint_interval",
                   "save_deadline", "save_deadline_most", "patience", "drain_time", "output_text",
                   "output_file", "ahead", "output_text_most", "output_file_most", "checkpoint_largest"}
    # Not a limit: one per core.
    NO_LIMITS = {"slots"}

    def test_a_machines_limits_of_zero(self):
        client = [os.path.join(harness.BIN, "sublet-client"), "--print-settings"]
        printed = subprocess.run(client, text=True, capture_output=True, check=True).stdout
        # Numbers, sizes, durations.
        limits = set(re.findall(r'^(\w+) = (?:[\d.]+|"\d+ (?:h|min|s|ms|.iB)")$', printed, re.M))
        for key in limits - self.NO_LIMITS:
            done = subprocess.run([*client, "--set", key + "=0"], text=True, capture_output=True)
            if key in self.MAY_BE_ZERO:
                self.assertEqual((done.returncode, done.stderr), (0, ""), key)
            else:
                self.assertEqual(done.returncode, 2, key)
                self.assertRegex(done.stderr, '"%s" must be [^;]* from [1-9]|"%s" must be .* from '
                                 "0.001" % (key, key))
        self.assertLess(self.MAY_BE_ZERO, limits)
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly", extra=[word for key in self.MAY_BE_ZERO - {"drain_time"}
                                        for word in ("--set", key + "=0")]).start()
            pool.wait_machines(1)
            details, text = pool.output(pool.submit("--", "echo", "hello")[0])
            self.assertEqual((details["state"], text), ("done", ""))
            last = pool.wait_state(pool.submit("--output", "f", "--", "sh", "-c", "echo x > f")[0],
                                   ["done", "failed"])["attempt_list"][-1]
            self.assertIn("The output 'f' has 2 B, its limit is 0 B.", last["reason"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_without_root(self):
        for test in ("test_every_way_to_memory", "test_page_cache", "test_memory", "test_processes",
                     "test_disk"):
            with self.subTest(test):
                harness.run_as_nobody(self, __file__, "Bounds." + test)

    def test_memory(self):
        """So many slots that each one's part is small."""
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly", slots=400, extra=["--set", "memory_reserve=1 TiB"]).start()
            pool.wait_machines(1)
            with open("/proc/meminfo") as f:
                machine = int(f.readline().split()[1]) * 1024
            part = machine // 2 // 400
            job = pool.submit("--", "tail", "/dev/zero")[0]
            details = pool.wait_state(job, ["failed"])
            last = details["attempt_list"][-1]
            self.assertEqual(last["ended"], "over its limits", last)
            self.assertIn("its slot's part of this machine's memory (", last["reason"])
            self.assertIn("--memory", last["reason"])
            self.assertIn(" MiB)" if part < 1 << 30 else " GiB)", last["reason"])
            if "memory limit is enforced per process" in pool.log("client-curly"):
                return  # without a cgroup its allocations fail, and it ends by itself
            limited = pool.submit("--memory", "20 MiB", "--", "tail", "/dev/zero")[0]
            last = pool.wait_state(limited, ["failed"])["attempt_list"][-1]
            self.assertEqual(last["ended"], "over its limits", last)
            self.assertIn("all of its memory limit (20 MiB)", last["reason"])

    def test_processes(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            storm = pool.submit("--processes-limit", "50", "--", "python3", "-c",
                                "import os, time\n"
                                "while True:\n"
                                "    if os.fork() == 0: time.sleep(600)\n")[0]
            last = pool.wait_state(storm, ["failed"])["attempt_list"][-1]
            self.assertEqual(last["ended"], "over its limits", last)
            self.assertIn("It reached its limit of 50 processes and threads. "
                          "--processes-limit gives it more.", last["reason"])
            self.assertGreaterEqual(last["processes_peak"], 50)

    def test_disk(self):
        """So many slots that each one's part is small: 128 MiB of 64 GiB."""
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly", slots=500, extra=["--set", "disk_check=100 ms"]).start()
            pool.wait_machines(1)
            script = ("import os, signal, sys\n"
                      "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
                      "os.posix_fallocate(os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY), 0,\n"
                      "                   int(sys.argv[2]) << 20)\n"
                      "open('ready', 'w').close()\n"
                      "signal.sigwait([signal.SIGUSR1])\n")

            def submit(where, mib, *options):
                return pool.submit(*options, "--", "python3", "-c", script, where, str(mib))[0]
            free = os.statvfs(curly.state)
            part = free.f_bavail * free.f_frsize // 500 >> 20
            # Who says so may have more, and who asks for little has no less.
            allowed = [submit("big", 2 * part, "--disk", "%d MiB" % (3 * part)),
                       submit("big", part // 2, "--disk", "1 MiB")]
            for job in allowed:
                ready = os.path.join(curly.state, "attempts", "%d.1" % job, "work", "ready")
                harness.wait_for(lambda: os.path.exists(ready), "job %d to have its file" % job)
            # That these end shows that the folders were looked at.
            for where in "big", "/tmp/big":
                last = pool.wait_state(submit(where, 2 * part + 100),
                                       ["failed"])["attempt_list"][-1]
                self.assertEqual(last["ended"], "over its limits", last)
                self.assertRegex(last["reason"], r"It used [0-9.]+ .iB of this machine's disk; it "
                                 r"may use [0-9.]+ .iB. Say with --disk how much it needs\.")
                self.assertGreaterEqual(last["disk_peak"], 2 * part << 20)
            for job in allowed:
                os.kill(int(curly.record("%d.1" % job)["job_pid"]), signal.SIGUSR1)
                self.assertEqual(pool.wait_state(job, ["failed", "done"])["state"], "done")

    def test_what_it_used_is_told(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("--", "python3", "-c",
                              "import os, signal\n"
                              "held = b'x' * 30_000_000\n"
                              "with open('big', 'wb') as f: f.write(held[:5_000_000])\n"
                              "for _ in range(3):\n"
                              "    if os.fork() == 0: signal.pause()\n"
                              "os.killpg(0, signal.SIGKILL)\n")[0]
            last = pool.wait_state(job, ["failed"])["attempt_list"][-1]
            self.assertGreaterEqual(last["memory_peak"], 30_000_000, last)
            self.assertGreaterEqual(last["disk_peak"], 5_000_000, last)
            if "processes are limited per account" not in pool.log("client-curly"):
                self.assertGreaterEqual(last["processes_peak"], 4, last)
            shown = pool.run("show", job)[1]
            for column in ("MEMORY", "PROCS", "DISK"):
                self.assertIn(column, shown)


if __name__ == "__main__":
    unittest.main()
