"""When the owner's programs need the memory, the job that uses the most leaves, and no job comes
until there is enough again. What the machine has is a file that the test mounts over
/proc/meminfo, for the client alone."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

MIB = 1 << 20
# The owner's reserve; a quarter of it must stay available.
RESERVE = 400 * MIB
HOLDER = ("import signal, sys\n"
          "held = b'x' * int(sys.argv[1])\n"
          "open(sys.argv[2], 'w').close()\n"
          "signal.pause()\n")


@unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a file over /proc/meminfo")
class LowMemory(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.meminfo = os.path.join(self.pool.folder, "meminfo")
        with open("/proc/meminfo") as f:
            self.truth = f.read()
        self.say_available(4000 * MIB)
        if subprocess.run(["unshare", "-m", "true"]).returncode != 0:
            self.skipTest("no mount namespaces here")
        self.client = self.pool.client(
            "curly", slots=2, extra=["--set", "memory_reserve=%d" % RESERVE],
            prefix=["unshare", "-m", "sh", "-c",
                    'mount --bind "$0" /proc/meminfo && exec "$@"', self.meminfo])
        self.pool.start_server()
        self.client.start()
        self.pool.wait_machines(1)

    def say_available(self, available):
        """In place, because the file is mounted."""
        lines = ["MemAvailable: %d kB" % (available // 1024) if line.startswith("MemAvailable:")
                 else line for line in self.truth.splitlines()]
        with open(self.meminfo, "r+" if os.path.exists(self.meminfo) else "w") as f:
            f.write("\n".join(lines) + "\n")
            f.truncate()

    def hold(self, name, size):
        mark = os.path.join(self.pool.folder, "marks", name)
        os.makedirs(os.path.dirname(mark), exist_ok=True)
        os.chmod(os.path.dirname(mark), 0o777)
        job = self.pool.submit("--name", name, "--", sys.executable, "-c", HOLDER, str(size),
                               mark)[0]
        harness.wait_for(lambda: os.path.exists(mark), "%s to hold its memory" % name)
        return job

    def test_the_largest_job_leaves(self):
        pool = self.pool
        small = self.hold("small", 5 * MIB)
        large = self.hold("large", 80 * MIB)
        self.say_available(99 * MIB)
        left = harness.wait_for(
            lambda: [a for a in pool.job(large)["attempt_list"] if a["ended_code"] != 0],
            "the large job to leave\n" + pool.all_logs())[0]
        self.assertEqual(left["ended_code"], 20, left)
        self.assertIn("memory was nearly used up (99 MiB left); of its jobs, this one used the "
                      "most (", left["reason"])
        # By now the small one may have been named, too: nothing has freed any memory here.
        named = [line.split("attempt ")[1] for line in pool.log("client-curly").splitlines()
                 if "must leave" in line]
        self.assertTrue(named[0].startswith("%d.1 " % large), named)
        # What it used is remembered: that much must be available.
        self.say_available(2000 * MIB)
        pool.wait_state(large, ["running"])
        pool.wait_state(small, ["running"])

    def test_the_only_job_leaves(self):
        """The machine is lent again when there is enough."""
        pool = self.pool
        job = self.hold("alone", 80 * MIB)
        self.say_available(99 * MIB)
        pool.wait_state(job, ["waiting"])
        harness.wait_for(lambda: pool.machines()[0]["state"] != "idle", "the machine to be busy")
        self.say_available(2000 * MIB)
        pool.wait_state(job, ["running"])
        self.assertEqual(len(pool.attempts(job)), 2)

    def test_no_job_comes_where_it_would_have_to_leave(self):
        pool = self.pool
        self.say_available(99 * MIB)
        job = pool.submit("--", "true")[0]
        # The server does not know yet, or it does: nothing is begun.
        harness.wait_for(lambda: "nearly used up" in pool.log("client-curly") or
                         pool.machines()[0]["state"] != "idle", "the machine to refuse it")
        self.say_available(2000 * MIB)
        details = pool.wait_state(job, ["done"])
        self.assertEqual([a["ended"] for a in details["attempt_list"]
                          if a["started_us"] != 0], ["done"])


if __name__ == "__main__":
    unittest.main()
