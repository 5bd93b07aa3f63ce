"""Jobs of one slot have the same control groups one after the other: what is seen of each is its
own, and the folders are gone with the client, or when the slot's shepherd was killed."""

import json
import os
import signal
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

BURN = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done"


def program_of(pid):
    """As the process calls itself; "": it has ended."""
    try:
        with open("/proc/%d/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return ""


class KeptCgroups(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.curly = self.pool.client("curly").start()
        self.pool.wait_machines(1)

    def run_one(self, *command):
        job = self.pool.submit("--", *command)[0]
        self.assertEqual(self.pool.wait_state(job, ["done", "failed"])["state"], "done")
        return job

    def start_one(self):
        """Its attempt's name and record, with the folder in which it is."""
        job = self.pool.submit("--", "sleep", "1000")[0]
        self.pool.wait_state(job, ["running"])
        attempt = "%d.1" % job
        record = self.curly.record(attempt)
        return job, record, urllib.parse.unquote(record.get("cgroup_unified", ""))

    def start_in_kept(self):
        """The same, in folders that were made for another attempt: the dead may leave late."""
        for _ in range(30):
            self.run_one("sh", "-c", BURN)
            job, record, folder = self.start_one()
            if not folder:
                self.skipTest("no control group of version 2 here")
            if not folder.endswith("-%d.1" % job):
                return job, record, folder
            self.pool.sublet("rm", job)
            harness.wait_for(lambda: not self.curly.attempts(), "it to go")
        self.fail("they are never kept\n" + self.pool.all_logs())

    def seen(self, job):
        """What `sublet owner status` shows of the job, or None until its record has been read."""
        shown = self.pool.run("owner", "status", "--json", "--state", self.curly.state)[1]
        return next((one for one in json.loads(shown)["attempts"]
                     if one["job"] == job and one["cpu_ms"] >= 0), None)

    def test_what_the_owner_sees_is_the_attempts_own(self):
        job, record, folder = self.start_in_kept()
        before_ms = int(record["cpu_before_us"]) / 1000
        self.assertGreater(before_ms, 10)
        seen = harness.wait_for(lambda: self.seen(job), "it to be seen")
        self.assertLess(seen["cpu_ms"], before_ms / 2, seen)
        self.assertEqual(seen["processes"], 1)
        self.assertLessEqual(seen["network"], 0)
        # It leaves, and what comes then is not in its folder.
        self.curly.owner("active")
        self.pool.wait_state(job, ["waiting"])
        harness.wait_for(lambda: not os.path.exists(folder), "its folder to go")
        self.curly.owner("away")
        self.pool.wait_state(job, ["running"])
        # Not always the second: the owner may return while an order is on its way.
        attempt = harness.wait_for(self.curly.running, "it to run again")
        again = urllib.parse.unquote(self.curly.record(attempt)["cgroup_unified"])
        self.assertTrue(again.endswith("-" + attempt), again)

    def test_a_killed_client(self):
        job, record, folder = self.start_in_kept()
        self.curly.kill()
        self.curly.start()
        self.assertTrue(harness.alive(int(record["job_pid"])))
        seen = harness.wait_for(lambda: self.seen(job), "it to be seen")
        self.assertLess(seen["cpu_ms"], int(record["cpu_before_us"]) / 2000, seen)
        self.assertTrue(os.path.exists(folder))
        self.pool.sublet("rm", job)
        harness.wait_for(lambda: not self.curly.attempts(), "it to go")
        harness.wait_for(lambda: not self.curly.cgroups(), "its folders to go")
        self.run_one("true")

    def test_a_killed_shepherd(self):
        job, record, folder = self.start_in_kept()
        os.kill(int(record["shepherd_pid"]), signal.SIGKILL)
        harness.wait_for(lambda: not os.path.exists(folder), "its folder to go")
        self.pool.wait_state(job, ["running"])
        self.pool.sublet("rm", job)
        harness.wait_for(lambda: not self.curly.attempts(), "it to go")
        # With an empty slot: it is noticed when the next job starts.
        self.run_one("true")
        kept = self.curly.cgroups()
        self.assertTrue(kept)
        shepherd, = (pid for pid in self.pool.processes() if program_of(pid) == "sublet-shepherd")
        os.kill(shepherd, signal.SIGKILL)
        self.run_one("true")
        harness.wait_for(lambda: not set(kept) & set(self.curly.cgroups()), "the old folders to go")

    def test_a_stopped_client(self):
        self.start_in_kept()
        self.curly.stop()
        harness.wait_for(lambda: not self.curly.cgroups(), "its folders to go")


if __name__ == "__main__":
    unittest.main()
