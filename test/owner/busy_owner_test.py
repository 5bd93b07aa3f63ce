"""A job beside an owner who keeps every core busy: it takes almost no CPU time from the
owner, and still saves in time when it must leave. With the kernel's cpu.idle, and
without cgroups."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

SAVE_MS = 20  # CPU time of a save
SAVE_DEADLINE_US = 2_000_000
CORES = sorted(os.sched_getaffinity(0))
# A client that sees no cgroups: an empty folder is mounted over them. Without root it
# cannot use them anyway.
NO_CGROUPS = ["unshare", "--mount", "sh", "-c",
              "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"", "sh"]
if os.geteuid() != 0:
    NO_CGROUPS = ["env"]
HIDING = unittest.skipIf(subprocess.run(NO_CGROUPS + ["true"]).returncode != 0,
                         "the cgroups cannot be hidden from the client here")
INSTEAD = "instead of cpu.idle"


def cpu_ns(pid):
    with open("/proc/%d/schedstat" % pid) as schedstat:
        return int(schedstat.read().split()[0])


class Owner:
    """A busy program on each of these cores, as if started by the owner from a terminal: at
    normal weight, in separate sessions, not children of the client."""

    def __init__(self, cores):
        self.cores = cores
        self.pids = []

    @staticmethod
    def spin(core):
        read, write = os.pipe()
        middle = os.fork()
        if middle == 0:
            os.setsid()
            pid = os.fork()
            if pid == 0:
                os.close(write)
                os.setsid()
                os.sched_setaffinity(0, [core])
                os.execv("/bin/sh", ["sh", "-c", "while :; do :; done"])
            os.write(write, b"%d" % pid)
            os._exit(0)
        os.close(write)
        os.waitpid(middle, 0)
        with os.fdopen(read) as told:
            return int(told.read())

    def __enter__(self):
        try:
            for core in self.cores:
                self.pids.append(self.spin(core))
            for pid in self.pids:
                harness.wait_for(lambda: cpu_ns(pid) > 50e6, "the owner's program to be busy")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for pid in self.pids:
            harness.kill(pid)


class BusyOwner(unittest.TestCase):
    def start(self, pool, cgroups):
        """A pool with one machine and a job on it that uses all CPU time it gets."""
        pool.start_server()
        curly = pool.client("curly", prefix=() if cgroups else NO_CGROUPS).start()
        pool.wait_machines(1)
        weighs = INSTEAD not in pool.log("client-curly")
        if cgroups and not weighs:
            self.skipTest("no cpu.idle here")
        self.assertEqual(weighs, cgroups)
        self.idle_for_good = os.geteuid() != 0 and "by the idle class" in pool.log("client-curly")
        saver = harness.Saver(pool)
        job = saver.submit(SAVE_MS, "spin")
        saver.wait_said("start")
        return curly, saver, job

    def save(self, cgroups):
        with harness.Pool() as pool:
            curly, saver, job = self.start(pool, cgroups)
            if self.idle_for_good:
                self.skipTest("without root nobody leaves the idle class to save")
            with Owner(CORES):
                curly.owner("active")
                (_, saved), = saver.wait_said("save")
                harness.wait_for(lambda: not curly.attempts(), "the job to leave\n" +
                                 pool.all_logs())
                first, = pool.job(job)["attempt_list"]
                self.assertEqual(first["ended"], "owner came back", first)
                self.assertEqual(first["generation"], 1, first)
                self.assertLessEqual(first["quiesce_us"], SAVE_DEADLINE_US)
            curly.owner("away")
            second, resumed = saver.wait_said("start", 2)[1]
            self.assertEqual((second, resumed), (2, saved))
            saver.finish()
            details = pool.wait_state(job, ["done", "failed"])
            self.assertEqual(details["state"], "done", details)
            self.assertGreaterEqual(details["attempt_list"][1]["resumed_ppm"], 0, details)
            self.assertEqual(details["evictions"], 1)

    def share(self, cgroups):
        """The owner's share of the CPU time that owner and job get together on one core, because
        other processes may be busy here."""
        with harness.Pool() as pool:
            curly, saver, job = self.start(pool, cgroups)
            tenant = int(curly.record(curly.attempts()[0])["job_pid"])
            os.sched_setaffinity(tenant, CORES[:1])
            with Owner(CORES[:1]) as owner:
                before = cpu_ns(owner.pids[0]), cpu_ns(tenant)

                def used():
                    owners = cpu_ns(owner.pids[0]) - before[0]
                    tenants = cpu_ns(tenant) - before[1]
                    return (owners, tenants) if owners + tenants >= 2e9 else None
                owners, tenants = harness.wait_for(used, "two seconds of CPU")
            share = owners / (owners + tenants)
            self.assertGreaterEqual(share, 0.95)
            self.assertEqual(len(pool.job(job)["attempt_list"]), 1)
            pool.sublet("rm", job)

    def test_saves_with_cgroups(self):
        self.save(True)

    @HIDING
    def test_saves_without_cgroups(self):
        self.save(False)

    def test_owner_keeps_the_core_with_cgroups(self):
        self.share(True)

    @HIDING
    def test_owner_keeps_the_core_without_cgroups(self):
        self.share(False)


if __name__ == "__main__":
    unittest.main()
