"""Places that are promised: to a job for which another gave way, and to one that needs so much of a
machine that others would always come before it."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for
from training import TrainingCase

SOON = "scheduling.tick=100 ms"


class Promises(TrainingCase):
    EPOCHS = 120  # it must still run when it has run for five ticks

    def setUp(self):
        self.pool = harness.Pool()
        self.pool.__enter__()
        self.addCleanup(self.pool.close)

    def gate(self, name):
        """A program that runs until open(name) is called."""
        path = os.path.join(self.pool.folder, "gate-" + name)
        return ["--", "sh", "-c", "until test -e %s; do sleep 0.02; done" % path]

    def open(self, name):
        with open(os.path.join(self.pool.folder, "gate-" + name), "w"):
            pass

    def trained(self, job, beneficiary, why):
        """It was evicted once for the other one, lost no work, and its result is right."""
        details = self.pool.wait_state(job, ["done", "failed"])
        self.assertEqual((details["state"], details["evictions"]), ("done", 1), details)
        first, second = details["attempt_list"]
        self.assertEqual(first["ended"], "pre-empted")
        self.assertEqual((first["preempted_for"], second["preempted_for"]), (beneficiary, 0))
        self.assertIn("pre-empted: gave way (for job %d of %s" % (beneficiary, why), first["reason"])
        self.assertTrue(0 < second["resumed_ppm"] < 1000000, second)
        self.check_result(self.pool, job)

    def test_a_user_s_more_important_job(self):
        self.pool.start_server([SOON, "scheduling.victims=priority"])
        curly = self.pool.client("curly").start()
        self.pool.wait_machines(1)
        job = self.submit(self.pool)
        self.wait_progress(curly)
        other, = self.pool.submit("--", "true")
        urgent, = self.pool.submit("--priority", 5, *self.gate("urgent"))
        self.pool.wait_state(urgent, "running")
        self.assertEqual(self.pool.job_state(other), "waiting")
        self.assertIn("promised to it while it waited: ", self.pool.run("why", urgent)[1])
        self.open("urgent")
        self.trained(job, urgent, "root: its user gave it priority 5, and this one 0"
                     if os.geteuid() == 0 else "")
        self.pool.wait_state(other, "done")

    @unittest.skipUnless(os.geteuid() == 0, "jobs of two users: needs root")
    def test_another_user_s_turn(self):
        """The place is his, although another job waits for longer."""
        self.pool.start_server([SOON, "scheduling.victims=up-down"])
        curly = self.pool.client("curly").start()
        self.pool.wait_machines(1)
        job = self.submit(self.pool)
        self.wait_progress(curly)
        other, = self.pool.submit("--", "true")
        os.chmod(self.pool.folder, 0o755)
        said = subprocess.run(
            harness.AS_NOBODY + [self.pool.public(os.path.join(harness.BIN, "sublet")), "submit",
                                 *self.gate("nobody")],
            cwd="/", env=self.pool.environment(), text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(said.returncode, 0, said.stderr)
        nobodys = other + 1
        self.pool.wait_state(nobodys, "running")
        self.assertEqual(self.pool.job_state(other), "waiting")
        self.open("nobody")
        self.trained(job, nobodys, "nobody: nobody holds no place, up-down index ")
        self.pool.wait_state(other, "done")

    def test_all_cores_beside_a_stream(self):
        """With narrow jobs always waiting. It has waited for long enough at once."""
        self.pool.start_server(["scheduling.wide_wait=0 s", "scheduling.jobs=fair-share-1998"])
        slots = len(os.sched_getaffinity(0)) + 1
        self.pool.client("curly", slots=slots).start()
        self.pool.wait_machines(1)
        cores = self.pool.machines()[0]["cores"]
        stream = [self.pool.submit(*self.gate(str(i)))[0] for i in range(slots)]
        for job in stream:
            self.pool.wait_state(job, "running")
        wide, = self.pool.submit("--cores", cores, "--priority", 1, *self.gate("wide"))
        waiting = self.pool.submit("--count", 3, *self.gate("last"))
        self.open("0")
        wait_for(lambda: "a place on curly is promised to it" in self.pool.run("why", wide)[1],
                 "the promise\n" + self.pool.all_logs())
        self.assertIn("promised to another job", self.pool.run("why", waiting[0])[1])
        shown = self.pool.job(wide)
        self.assertEqual((shown["state"], shown["promised"], shown["starts_at_us"]),
                         ("waiting", "curly", 0))
        self.assertEqual(self.pool.job(waiting[0])["promised"], "")
        for i in range(1, slots):
            self.open(str(i))
        self.pool.wait_state(wide, "running")
        self.open("wide")
        self.open("last")
        for job in stream + [wide] + waiting:
            self.pool.wait_state(job, "done")


if __name__ == "__main__":
    unittest.main()
