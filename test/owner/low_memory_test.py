"""When the owner's programs need the memory, the job that uses the most leaves, and no job comes
until there is enough again. What the machine has is a file that the test mounts over
/proc/meminfo, for the client alone. For how long programs wait for memory is the kernel's word."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

MIB = 1 << 20
# The owner's reserve; a quarter of it must stay available.
RESERVE = 400 * MIB
# Another slot's account must be able to write the mark again.
HOLDER = ("import os, signal, sys\n"
          "os.umask(0)\n"
          "held = b'x' * int(sys.argv[1])\n"
          "open(sys.argv[2], 'w').close()\n"
          "signal.pause()\n")
# Reads more of a file again and again than its bound keeps: it waits for memory, whatever the
# machine has.
BOUND = 48 * MIB
THRASHER = ("import mmap, os, sys\n"
            "with open('big', 'w+b') as f:\n"
            "    for block in range(100):\n"
            "        f.write(b'x' * (1 << 20))\n"
            "    f.flush()\n"
            "    os.fsync(f.fileno())\n"
            "    page = mmap.mmap(f.fileno(), 0)\n"
            "while True:\n"
            "    for at in range(0, len(page), 4096):\n"
            "        page[at]\n"
            "    open(sys.argv[1], 'w').close()\n")
PRESSURE = "/proc/pressure/memory"


def waited_us(path):
    with open(path) as f:
        return int(f.readline().rsplit("total=", 1)[1])


@unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a file over /proc/meminfo")
class LowMemory(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        with open("/proc/meminfo") as f:
            self.truth = f.read()
        if subprocess.run(["unshare", "-m", "true"]).returncode != 0:
            self.skipTest("no mount namespaces here")
        self.pool.start_server()
        self.start_client("curly", 4000 * MIB, RESERVE)
        self.pool.wait_machines(1)

    def start_client(self, name, available, reserve):
        self.say_available(available, name)
        return self.pool.client(
            name, slots=2, extra=["--set", "memory_reserve=%d" % reserve],
            prefix=["unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/meminfo && exec "$@"',
                    self.meminfo(name)]).start()

    def meminfo(self, name):
        return os.path.join(self.pool.folder, "meminfo-" + name)

    def say_available(self, available, name="curly"):
        """In place, because the file is mounted."""
        lines = ["MemAvailable: %d kB" % (available // 1024) if line.startswith("MemAvailable:")
                 else line for line in self.truth.splitlines()]
        file = self.meminfo(name)
        with open(file, "r+" if os.path.exists(file) else "w") as f:
            f.write("\n".join(lines) + "\n")
            f.truncate()

    def machine(self, name):
        return next(m for m in self.pool.machines() if m["name"] == name)

    def marks(self):
        folder = os.path.join(self.pool.folder, "marks")
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o777)
        return folder

    def hold(self, name, size):
        mark = os.path.join(self.marks(), name)
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

    def test_no_job_goes_where_its_array_had_to_leave(self):
        """Nor the element that never ran: one of those that did has shown what they need."""
        pool = self.pool
        marks = self.marks()
        jobs = pool.submit("--count", "3", "--", sys.executable, "-c", HOLDER, str(80 * MIB),
                           os.path.join(marks, "{index}"))
        harness.wait_for(lambda: len(os.listdir(marks)) == 2,
                         "two jobs to hold their memory\n" + pool.all_logs())
        self.say_available(60 * MIB)
        gone = harness.wait_for(lambda: [job for job in jobs[:2]
                                         if pool.job(job)["state"] == "waiting"],
                                "one of them to leave\n" + pool.all_logs())[0]
        peak = pool.attempts(gone)[0]["memory_peak"]
        self.assertGreater(peak, 80 * MIB)
        moe = self.start_client("moe", 70 * MIB, 40 * MIB)
        pool.wait_machines(1)
        for job, who in (gone, "it"), (jobs[2], "another of its array"):
            said = r"%s used ([0-9.]+) MiB of memory before; no machine has \1 MiB of memory " \
                   r"\(largest: 70 MiB on moe\)$" % who
            why = harness.wait_for(
                lambda job=job, said=said: re.search(said, pool.run("why", str(job))[1], re.M),
                "`why` to name what was used; job %d:\n%s" % (job, pool.run("why", str(job))[1]))
            self.assertAlmostEqual(float(why.group(1)), peak / MIB, delta=1)
            self.assertEqual(pool.job(job)["description"]["needs"]["memory"], 0)
        self.assertEqual({a["machine_name"] for job in jobs for a in pool.attempts(job)},
                         {"curly"})
        for mark in os.listdir(marks):
            os.remove(os.path.join(marks, mark))
        self.say_available(2000 * MIB, "moe")
        moe.owner("active")  # reported at once, and with it what is free
        harness.wait_for(lambda: self.machine("moe")["state"] == "busy", "moe's owner to be seen")
        moe.owner("away")
        harness.wait_for(lambda: len(os.listdir(marks)) == 2,
                         lambda: "two of them to run where there is enough\n%s\n%s\n%s" %
                         (pool.machines(), [pool.job(job) for job in jobs], pool.all_logs()))
        there = [a for job in jobs for a in pool.attempts(job) if a["machine_name"] == "moe"]
        self.assertEqual([a["ended_code"] for a in there], [0, 0], there)

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

    def owners_group(self):
        """Control groups beside those of the jobs, with little memory; their files of members."""
        root = "/sys/fs/cgroup"
        alone = os.path.exists(root + "/cgroup.controllers")
        unified, memory = (root, root) if alone else (root + "/unified", root + "/memory")
        limit = "memory.max" if alone else "memory.limit_in_bytes"
        folders = sorted({"%s/owner-%d" % (parent, os.getpid()) for parent in (unified, memory)})
        for folder in folders:
            try:
                os.mkdir(folder)
            except OSError as error:
                self.skipTest("no control groups: %s" % error)
            self.addCleanup(os.rmdir, folder)
        with open("%s/owner-%d/%s" % (memory, os.getpid(), limit), "w") as f:
            f.write(str(BOUND))
        if not os.path.exists("%s/owner-%d/memory.pressure" % (unified, os.getpid())):
            self.skipTest("this kernel does not say which group waits for memory")
        return [folder + "/cgroup.procs" for folder in folders]

    def test_a_job_leaves_when_programs_wait_for_memory(self):
        """They have to read again what was evicted; MemAvailable counts it as available. These
        wait for a bound of their own, because the machine has enough."""
        pool = self.pool
        self.hold("small", 5 * MIB)
        large = self.hold("large", 80 * MIB)
        members = self.owners_group()
        owner = subprocess.Popen(
            ["sh", "-c", 'for m in %s; do echo 0 >$m; done; exec "$@"' % " ".join(members), "sh",
             sys.executable, "-c", THRASHER, "round"], cwd=pool.folder)
        try:
            left = harness.wait_for(
                lambda: [a for a in pool.job(large)["attempt_list"] if a["ended_code"] != 0],
                "the large job to leave\n" + pool.all_logs())[0]
        finally:
            owner.kill()
            owner.wait()
        self.assertEqual(left["ended_code"], 20, left)
        self.assertIn("Other programs on the machine waited for memory (3.9 GiB left); of its "
                      "jobs, this one used the most (", left["reason"])
        harness.wait_for(lambda: pool.machines()[0]["state"] != "idle", "the machine to be busy")

    def test_a_job_that_waits_for_its_own_bound_stays(self):
        pool = self.pool
        self.owners_group()
        before = waited_us(PRESSURE)
        mark = os.path.join(pool.folder, "mark")
        os.makedirs(mark)
        os.chmod(mark, 0o777)
        mark = os.path.join(mark, "round")
        job = pool.submit("--memory", str(BOUND), "--", sys.executable, "-c", THRASHER, mark)[0]

        def has_ended():
            return [a for a in pool.job(job)["attempt_list"] if a["ended_code"] != 0]
        harness.wait_for(lambda: os.path.exists(mark) or has_ended(), "the job to read everything")
        harness.wait_for(lambda: waited_us(PRESSURE) - before > 3_000_000 or has_ended(),
                         "the job to wait for memory for 3 s")
        self.assertEqual(has_ended(), [], pool.all_logs())


if __name__ == "__main__":
    unittest.main()
