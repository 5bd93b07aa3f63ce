"""What a job does when the owner is back, by the workstation's way and its own: leave, suspend,
linger, kill."""

import json
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

# Counts for as long as it may, and says when it is asked to leave.
COUNTING = ("trap 'echo asked > said; exit 75' TERM; n=0; touch ready; "
            "while :; do n=$((n+1)); echo $n > count.new; mv count.new count; sleep 0.01; done")


class WaysToLeave(unittest.TestCase):
    def start(self, *sets, monitor_sets=()):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.curly = self.pool.client("curly", monitor_sets=monitor_sets, extra=[
            word for one in sets for word in ("--set", one)]).start()
        self.pool.wait_machines(1)

    def run_job(self, *options):
        job = self.pool.submit(*options, "--", "sh", "-c", COUNTING)[0]
        self.pool.wait_state(job, "running")
        wait_for(lambda: self.work("ready", job), "the job to be ready")
        return job

    def work(self, name, job):
        try:
            with open(os.path.join(self.curly.state, "attempts", "%d.1" % job, "work", name)) as f:
                return f.read() or "there"
        except FileNotFoundError:
            return None

    def count(self, job):
        return int(self.work("count", job) or 0)

    def frozen(self, job):
        return harness.is_frozen(self.curly.record("%d.1" % job))

    def attempt(self, job):
        return self.pool.attempts(job)[-1]

    def wait_suspended(self, job):
        self.pool.wait_state(job, "suspended")
        self.assertEqual(self.attempt(job)["state"], "suspended")
        wait_for(lambda: self.frozen(job), "the job to be frozen")

    def test_suspended_and_back(self):
        self.start("leaving=suspend")
        job = self.run_job()
        started = self.attempt(job)["started_us"]
        for _ in range(2):
            self.curly.owner("active")
            self.wait_suspended(job)
            before = self.count(job)
            self.assertIn("suspended on curly", self.pool.run("why", str(job))[1])
            self.assertIn("1 suspended", self.pool.run("top", "--once")[1])
            self.assertEqual([one["id"] for one in
                              self.pool.sublet("ls", "--state", "suspended")["jobs"]], [job])
            self.assertEqual(self.pool.machines()[0]["state"], "busy")
            self.curly.owner("away")
            self.pool.wait_state(job, "running")
            wait_for(lambda: self.count(job) > before + 3, "the job to go on")
        self.assertEqual(self.attempt(job)["started_us"], started)
        self.assertEqual(len(self.pool.job(job)["attempt_list"]), 1)
        self.assertIsNone(self.work("said", job))

    def test_the_owner_stays(self):
        self.start("leaving=suspend", "suspend_for=1 s")
        job = self.run_job()
        self.curly.owner("active")
        self.pool.wait_state(job, "waiting")
        self.assertIn("%d.1 is suspended" % job, self.pool.log("client-curly"))
        attempt = self.attempt(job)
        self.assertEqual(attempt["ended"], "owner came back")
        # It was asked to leave when its time was over.
        self.assertGreaterEqual(attempt["save_asked_us"], 0)

    def test_the_owner_says_no(self):
        """A job that is suspended leaves at once when the owner pauses the machine."""
        self.start("leaving=suspend", "suspend_for=1 h")
        job = self.run_job()
        self.curly.owner("active")
        self.wait_suspended(job)
        code, _, err = self.pool.run("owner", "pause", "--state", self.curly.state)
        self.assertEqual((code, err), (0, ""))
        self.pool.wait_state(job, "waiting")
        self.assertEqual(self.attempt(job)["ended"], "owner came back")

    def test_removed_and_drained(self):
        self.start("leaving=suspend", "suspend_for=1 h")
        job = self.run_job()
        self.curly.owner("active")
        self.wait_suspended(job)
        self.pool.sublet("rm", job)
        wait_for(lambda: not self.curly.attempts(), "the removed job to be gone")
        self.curly.owner("away")
        job = self.run_job()
        self.curly.owner("active")
        self.wait_suspended(job)
        self.curly.stop()
        self.pool.wait_state(job, "waiting")
        self.assertEqual(self.attempt(job)["ended"], "client stopped")

    def test_whoever_dies_a_suspended_job_leaves(self):
        for victim in ("monitor", "shepherd"):
            with self.subTest(victim):
                self.start("leaving=suspend", "suspend_for=1 h")
                job = self.run_job()
                self.curly.owner("active")
                self.wait_suspended(job)
                record = self.curly.record("%d.1" % job)
                pids = {"monitor": self.curly.monitor_pids(),
                        "shepherd": [int(record["shepherd_pid"])]}[victim]
                for pid in pids:
                    harness.kill(pid)
                wait_for(lambda: not harness.alive(int(record["job_pid"])), "the job to be gone")
                self.pool.wait_state(job, "waiting")
                self.assertIn(self.attempt(job)["ended"],
                              {"monitor": ["load monitor failed"],
                               "shepherd": ["owner came back"]}[victim])
                self.pool.close()

    def test_a_stopped_shepherd(self):
        self.start("leaving=suspend", "suspend_for=1 h")
        job = self.run_job()
        self.curly.owner("active")
        self.wait_suspended(job)
        record = self.curly.record("%d.1" % job)
        os.kill(int(record["shepherd_pid"]), signal.SIGSTOP)
        wait_for(lambda: not harness.alive(int(record["job_pid"])), "the job to be killed")
        self.pool.wait_state(job, "waiting")
        self.assertEqual(self.attempt(job)["ended"], "owner came back")

    def test_a_lingering_job_is_killed(self):
        """Whoever kills it while the owner is here: it was in the way."""
        self.start("leaving=linger", monitor_sets=["linger_slowdown=1"])
        job = self.run_job()
        self.curly.owner("active")
        wait_for(lambda: self.pool.machines()[0]["state"] == "busy", "the machine to be busy")
        os.kill(int(self.curly.record("%d.1" % job)["job_pid"]), signal.SIGKILL)
        self.pool.wait_state(job, "waiting")
        self.assertEqual(self.attempt(job)["ended"], "owner came back")

    def rule(self, *words):
        code, _, err = self.pool.run("owner", "rules", *words, "--state", self.curly.state)
        self.assertEqual((code, err), (0, ""))

    def test_rules(self):
        """One that withholds the machine lets wait what is suspended; one that evicts does not."""
        self.start("leaving=suspend", "suspend_for=1 h")
        job = self.run_job()
        self.curly.owner("active")
        self.wait_suspended(job)
        self.rule("--idle-when", "hour < 0", "--evict-when", "hour < 0")
        self.curly.owner("away")
        wait_for(lambda: self.status()["reason"] == "rule", "the rule to keep jobs away")
        self.assertEqual(self.pool.job_state(job), "suspended")
        self.rule("--remove")
        self.pool.wait_state(job, "running")
        self.curly.owner("active")
        self.wait_suspended(job)
        self.rule("--evict-when", "hour >= 0")
        self.pool.wait_state(job, "waiting")
        self.assertEqual(self.attempt(job)["ended"], "owner came back")

    def status(self):
        return json.loads(self.pool.run("owner", "status", "--json", "--state",
                                        self.curly.state)[1])

    def test_a_restarted_client(self):
        """It adopts a suspended job, which goes on when the owner has gone."""
        self.start("leaving=suspend", "suspend_for=1 h")
        job = self.run_job()
        self.curly.owner("active")
        self.wait_suspended(job)
        before = self.count(job)
        self.curly.kill()
        self.curly.start()
        self.pool.wait_state(job, "suspended")
        self.curly.owner("away")
        self.pool.wait_state(job, "running")
        wait_for(lambda: self.count(job) > before, "the job to go on")
        self.assertEqual(len(self.pool.job(job)["attempt_list"]), 1)

    def test_a_restarted_server(self):
        self.start("leaving=suspend", "suspend_for=1 h")
        job = self.run_job()
        self.curly.owner("active")
        self.wait_suspended(job)
        self.pool.kill_server()
        self.pool.wait_serving()
        self.assertEqual(self.pool.job_state(job), "suspended")
        self.curly.owner("away")
        self.pool.wait_state(job, "running")
        self.assertEqual(len(self.pool.job(job)["attempt_list"]), 1)

    def test_lingers_beside_the_owner(self):
        # Other tests that run beside this one are no burden here.
        self.start("leaving=linger", monitor_sets=["linger_slowdown=1"])
        job = self.run_job()
        self.curly.owner("active")
        wait_for(lambda: "the owner is here" in self.pool.log("client-curly"), "the owner")
        wait_for(lambda: self.pool.machines()[0]["state"] == "busy", "the machine to be busy")
        before = self.count(job)
        wait_for(lambda: self.count(job) > before + 20, "the job to run on")
        self.assertEqual(self.pool.job_state(job), "running")
        self.curly.owner("away")
        self.pool.wait_machines(1, "busy")
        self.curly.owner("active")
        self.assertEqual(self.pool.run("owner", "pause", "--state", self.curly.state)[0], 0)
        self.pool.wait_state(job, "waiting")
        self.assertEqual(len(self.pool.job(job)["attempt_list"]), 1)
        self.assertEqual(self.attempt(job)["ended"], "owner came back")

    def test_a_burden_leaves(self):
        """Programs of the owner's that wait for the CPU: whoever caused it, the job goes."""
        self.start("leaving=linger", monitor_sets=["linger_slowdown=0"])
        job = self.run_job()
        self.curly.owner("active")
        self.pool.wait_state(job, "waiting")
        self.assertEqual(self.attempt(job)["ended"], "owner came back")
        self.assertGreaterEqual(self.attempt(job)["save_asked_us"], 0)

    def test_killed(self):
        self.start("leaving=kill")
        job = self.run_job()
        self.curly.owner("active")
        self.pool.wait_state(job, "waiting")
        attempt = self.attempt(job)
        self.assertEqual((attempt["ended"], attempt["save_asked_us"]), ("owner came back", -1))

    def test_the_stricter_way_holds(self):
        """A job may leave where it could stay, but not stay where it has to leave."""
        self.start("leaving=suspend", "suspend_for=1 h")
        job = self.run_job("--leaving", "kill")
        self.assertEqual(self.pool.job(job)["description"]["leaving"], "kill")
        self.curly.owner("active")
        self.pool.wait_state(job, "waiting")
        self.assertEqual(self.attempt(job)["save_asked_us"], -1)
        self.pool.close()
        self.start()
        job = self.run_job("--leaving", "suspend")
        self.curly.owner("active")
        self.pool.wait_state(job, "waiting")
        self.assertGreaterEqual(self.attempt(job)["save_asked_us"], 0)


if __name__ == "__main__":
    unittest.main()
