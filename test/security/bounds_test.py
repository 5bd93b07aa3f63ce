"""What a job gets of a workstation if it asks for nothing: its memory, its processes; and what is
said of what it used."""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness


class Bounds(unittest.TestCase):
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
            storm = pool.submit("--processes-limit", "50", "--", sys.executable, "-c",
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
            job = pool.submit("--", sys.executable, "-c",
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
