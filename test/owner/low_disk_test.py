"""A job that fills the workstation's disk leaves before the disk is full; other jobs stay,
and no job is accepted until there is space."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

MIB = 1 << 20
RESERVE = 40 * MIB


def free(folder):
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


# Writes at most 40 MB/s and ignores SIGTERM.
WRITER = ("trap '' TERM; while :; do head -c 2000000 /dev/zero >> big || exit 9; "
          "sleep 0.05; done")


@unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a small disk")
class LowDisk(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool(["pool.administrators=nobody"])
        self.addCleanup(self.pool.close)
        self.client = self.pool.client("curly", slots=2, extra=[
            "--set", "disk_reserve=%d" % RESERVE, "--set", "disk_check=500 ms"])
        mount = ["mount", "-t", "tmpfs", "-o", "size=100m,mode=711", "tmpfs", self.client.state]
        if subprocess.run(mount).returncode != 0:
            self.skipTest("cannot mount a tmpfs here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.client.state])
        self.pool.start_server()
        self.client.start()
        self.pool.wait_machines(1)

    def last(self, job):
        return self.pool.job(job)["attempt_list"][-1]

    def first_attempt_ended(self, job):
        return harness.wait_for(
            lambda: [a for a in self.pool.job(job)["attempt_list"] if a["ended_code"] != 0],
            "job %d to leave\n%s" % (job, self.pool.all_logs()))[0]

    def test_what_a_job_has_written_is_taken_once(self):
        """It is not free any more, but it was reserved for that job: another one has room beside
        it."""
        pool = self.pool
        first = pool.submit("--disk", "45 MiB", "--", "sh", "-c",
                            "head -c 40000000 /dev/zero > mine; touch ready; sleep 1000")[0]
        pool.wait_state(first, "running")
        work = os.path.join(self.client.state, "attempts", "%d.1" % first, "work")
        harness.wait_for(lambda: os.path.exists(work + "/ready"), "the first job")
        left = free(self.client.state) - 45 * MIB  # if it were taken twice
        need = left + 2 * MIB
        self.assertGreater(free(self.client.state), need + RESERVE)
        second = pool.submit("--disk", str(need), "--", "true")[0]
        pool.wait_state(second, "done")
        self.assertEqual(pool.job_state(first), "running")

    def test_the_job_that_fills_the_disk_leaves(self):
        pool = self.pool
        # It may have nearly all, until another uses some of that.
        hog = pool.submit("--name", "hog", "--disk", "55 MiB", "--", "sh", "-c",
                          "while [ ! -e go ]; do sleep 0.05; done; " + WRITER)[0]
        pool.wait_state(hog, "running")
        quiet = pool.submit("--name", "quiet", "--", "sh", "-c",
                            "head -c 10000000 /dev/zero > mine; touch ready; sleep 1000")[0]
        work = os.path.join(self.client.state, "attempts", "%d.1", "work")
        harness.wait_for(lambda: os.path.exists(work % quiet + "/ready"), "the quiet job")
        with open(work % hog + "/go", "w"):
            pass
        least = free(self.client.state)

        def left():
            nonlocal least
            least = min(least, free(self.client.state))
            return [a for a in pool.job(hog)["attempt_list"] if a["ended_code"] != 0]
        first = harness.wait_for(left, "the hog to leave\n" + pool.all_logs())[0]
        self.assertGreater(least, 0)
        self.assertEqual(first["ended_code"], 20, first)
        self.assertIn("disk was nearly full", first["reason"])
        self.assertEqual(self.last(quiet)["number"], 1)
        pool.wait_state(quiet, "running")
        harness.wait_for(lambda: free(self.client.state) > 80 * MIB,
                         "room on the disk\n" + pool.all_logs())
        # It would fill the disk again.
        harness.wait_for(lambda: "of disk" in pool.job(hog)["reason"],
                         "a reason\n" + pool.all_logs())
        pool.sublet("rm", hog)
        done = pool.submit("--", "true")[0]
        self.assertEqual(pool.wait_state(done, ["done", "failed"])["state"], "done")

    def test_an_owner_who_needs_the_disk_gets_it(self):
        pool = self.pool
        job = pool.submit("--", "sh", "-c", "head -c 5000000 /dev/zero > mine; sleep 1000")[0]
        pool.wait_state(job, "running")
        filler = os.path.join(self.client.state, "the-owners")
        with open(filler, "wb") as file:
            file.write(b"x" * (free(self.client.state) - RESERVE + 10 * MIB))
        first = self.first_attempt_ended(job)
        self.assertEqual(first["ended_code"], 20, first)
        self.assertIn("nearly full", first["reason"])
        pool.wait_machines(1, "busy")
        self.assertEqual(pool.job_state(job), "waiting")
        os.unlink(filler)
        pool.wait_state(job, "running")
        details = pool.job(job)
        self.assertEqual((details["evictions"], details["attempts"]), (1, 2), details)

    def test_a_full_disk(self):
        """With no reserve: the job's writes fail, its end is told, and the next one runs. With a
        client run by root and one of nobody's."""
        self.client.stop()
        script = "head -c 200000000 /dev/zero > big || exit 7"
        for number, prefix in enumerate(([], harness.AS_NOBODY)):
            if prefix and not harness.has_walls(nobody=True):
                continue
            client = self.pool.client("full%d" % number, prefix=prefix, grants=[], extra=[
                "--set", "disk_reserve=0"], nobodys=bool(prefix))
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=50m,mode=711", "tmpfs",
                            client.state], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", client.state])
            if prefix:
                os.chown(client.state, harness.NOBODY, harness.NOBODY)
            client.start()
            self.pool.wait_machines(1)
            job = self.pool.submit("--", "sh", "-c", script)[0]
            details = self.pool.wait_state(job, ["failed", "done"])
            self.assertEqual(details["attempt_list"][-1]["exit_status"], 7, details)
            harness.wait_for(lambda: free(client.state) > 40 * MIB, "the disk to be free")
            self.assertEqual(self.pool.wait_state(self.pool.submit("--", "true")[0],
                                                  ["failed", "done"])["state"], "done")
            self.assertEqual(client.stop(), 0)


if __name__ == "__main__":
    unittest.main()
