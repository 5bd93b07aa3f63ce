"""Places that are promised: to a job for which another gave way, and to one that needs so much of a
machine that others would always come before it."""

import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

SOON = "scheduling.tick=100 ms"


class Promises(unittest.TestCase):
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

    def start_saver(self):
        """A job that ends when it is told to, however long the others take to come."""
        self.saver = harness.Saver(self.pool)
        job = self.saver.submit(0, "nap", "--save-deadline", "10 s")
        self.saver.wait_said("start")
        return job

    def starts(self, job):
        """When its attempts have been started."""
        attempts = self.pool.job(job)["attempt_list"]
        return [attempt["started_us"] for attempt in attempts if attempt["started_us"] > 0]

    def what_became_of(self, *jobs):
        return "\n".join([json.dumps(self.pool.job(job), indent=1) for job in jobs] +
                         [self.pool.all_logs()])

    def gave_way(self, job, beneficiary, why):
        """It left for the other one first, and has lost no work. Returns its details."""
        self.saver.finish()
        details = self.pool.wait_state(job, ["done", "failed"])
        told = self.what_became_of(job, beneficiary)
        self.assertEqual(details["state"], "done", told)
        first = details["attempt_list"][0]
        self.assertEqual((first["ended"], first["preempted_for"]), ("pre-empted", beneficiary), told)
        self.assertIn("pre-empted: gave way (for job %d of %s" % (beneficiary, why), first["reason"])
        saves = self.saver.said("save")
        for attempt, count in self.saver.said("start"):
            before = [saved for other, saved in saves if other < attempt]
            self.assertEqual(count, before[-1] if before else 0, told)
        self.assertGreater(self.saver.said("start")[-1][1], 0, told)
        (_, counted), = self.saver.said("done")
        self.assertGreaterEqual(counted, saves[-1][1])
        return details

    def test_a_user_s_more_important_job(self):
        self.pool.start_server([SOON, "scheduling.victims=priority"])
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        job = self.start_saver()
        other, = self.pool.submit("--", "true")
        urgent, = self.pool.submit("--priority", 5, *self.gate("urgent"))
        self.pool.wait_state(urgent, "running")
        self.assertEqual(self.pool.job_state(other), "waiting",
                         self.what_became_of(job, other, urgent))
        self.assertIn("promised to it while it waited: ", self.pool.run("why", urgent)[1])
        self.open("urgent")
        details = self.gave_way(job, urgent, "root: its user gave it priority 5, and this one 0"
                                if os.geteuid() == 0 else "")
        self.assertEqual(details["evictions"], 1, details)
        self.pool.wait_state(other, "done")

    @unittest.skipUnless(os.geteuid() == 0, "jobs of two users: needs root")
    def test_another_user_s_turn(self):
        """The place is his, although another job waits for longer. What happens next depends on
        time: once he has held the place for five ticks, it may be the first user's turn again."""
        self.pool.start_server([SOON, "scheduling.victims=up-down"])
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        job = self.start_saver()
        other, = self.pool.submit("--", "true")
        os.chmod(self.pool.folder, 0o755)
        said = subprocess.run(
            harness.AS_NOBODY + [self.pool.public(os.path.join(harness.BIN, "sublet")), "submit",
                                 *self.gate("nobody")],
            cwd="/", env=self.pool.environment(), text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(said.returncode, 0, said.stderr)
        nobodys = other + 1
        wait_for(lambda: self.starts(nobodys), lambda: "his job\n" +
                 self.what_became_of(job, other, nobodys))
        self.open("nobody")
        self.gave_way(job, nobodys, "nobody: nobody holds no place, up-down index ")
        for one in (nobodys, other):
            self.pool.wait_state(one, "done")
        self.assertLess(self.starts(nobodys)[0],
                        min(self.starts(job)[1], self.starts(other)[0]),
                        self.what_became_of(job, other, nobodys))

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
