"""The server is killed between every two steps of a job: nothing is lost and nothing is
done twice. Four kinds of jobs: one that runs to its end; one that is evicted, hands in
its checkpoint and resumes from it; one that is removed while it runs; one whose end stops
its batch."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

# How often each step occurs; the first commits and replies are those of the machine
# that joins.
PLACES = {"commit": range(1, 9), "committed": range(1, 9), "reply": range(1, 12), "dispatch": [1],
          "dispatched": [1], "report": [1], "reported": [1]}
# From the report of the start on: presence, upload of the checkpoint, end and requeue
# together, the second order, its start.
EVICTED = {"commit": range(10, 17), "committed": range(10, 17), "reply": range(12, 25),
           "dispatch": [2], "dispatched": [2], "report": [1, 2], "reported": [1, 2]}
# The same: the removal, the end.
REMOVED = {"commit": range(10, 13), "committed": range(10, 13), "reply": range(12, 18),
           "report": [1], "reported": [1]}
# Around the end that stops the batch.
STOPPED = {"commit": range(8, 13), "committed": range(8, 13), "report": [1], "reported": [1]}


class CrashSteps(unittest.TestCase):
    def start(self, place, count):
        """A pool of one machine whose server dies once at PLACE:COUNT."""
        crash = "debug.crash_at=%s:%d" % (place, count)
        pool = harness.Pool(server_sets=["scheduling.lease=6 s", crash])
        self.addCleanup(pool.close)
        pool.start_server()
        pool.patient = True
        curly = pool.client("curly").start()
        pool.wait_machines(1)
        return pool, curly

    def run_with_crash(self, place, count):
        """One job from its submission to its end."""
        pool, _ = self.start(place, count)
        marks = os.path.join(pool.folder, "marks")
        os.makedirs(marks)
        os.chmod(marks, 0o777)
        job = pool.submit("--name", "once", "--output", "out", "--", "sh", "-c",
                          "mktemp %s/XXXXXX; echo 42 > out" % marks)[0]
        details = pool.wait_state(job, ["done", "failed"])
        self.assertEqual(details["state"], "done", details)
        # The record of a start may be lost with its machine's answer, but every attempt
        # that ran and ended is recorded.
        self.assertEqual(len(os.listdir(marks)), 1, "the program ran once")
        self.check_done_once(pool, job, details, "42\n")
        self.check_crashed(pool)

    def evict_with_crash(self, place, count):
        """One job that leaves its machine with a checkpoint and resumes from it."""
        pool, curly = self.start(place, count)
        saver = harness.Saver(pool)
        job = saver.submit(0, "nap")
        saver.wait_said("start")
        # Only a start that lasts is told, and is a commit of its own.
        pool.wait_state(job, "running")
        curly.owner("active")
        (first, saved), = saver.wait_said("save")
        # Its checkpoint must survive the crash.
        curly.owner("away")
        saver.wait_said("start", 2)
        pool.wait_state(job, "running")
        saver.finish()
        details = pool.wait_state(job, ["done", "failed"])
        self.assertEqual(details["state"], "done", details)
        starts = saver.said("start")
        self.assertEqual(len(starts), 2, "the program ran twice")
        self.assertEqual(starts[1][1], saved, "and went on where it had left")
        self.assertEqual(len(saver.said("save")), 1)
        (_, counted), = saver.said("done")
        self.check_done_once(pool, job, details, "%d\n" % counted)
        evicted = [a for a in details["attempt_list"] if a["ended"] == "owner came back"]
        self.assertEqual([a["number"] for a in evicted], [first], details)
        self.assertEqual(details["evictions"], 1)
        self.assertEqual(sum(line["evictions"] for line in pool.ask("report")["usage"]), 1)
        self.check_crashed(pool)

    def remove_with_crash(self, place, count):
        """One job that is removed while it runs."""
        pool, curly = self.start(place, count)
        saver = harness.Saver(pool)
        job = saver.submit(0, "nap")
        saver.wait_said("start")
        pid = int(curly.record(curly.attempts()[0])["job_pid"])
        try:
            told = pool.sublet("rm", job)
            self.assertEqual((told["changed"], told["unchanged"]), (1, 0), "removed, told once")
        except harness.Failed as failed:
            # Not acknowledged: it may have been done or not, and is repeated.
            self.assertIn("server", failed.err)
            pool.wait_serving()
            pool.sublet("rm", job)
            pool.patient = True
        self.assertEqual(pool.job_state(job), "removed")
        harness.wait_for(lambda: not harness.alive(pid), "the program to go\n" + pool.all_logs())
        harness.wait_for(lambda: not curly.attempts(), "its attempt to be forgotten\n" +
                         pool.all_logs())
        pool.wait_machines(1)
        details = pool.job(job)
        self.assertEqual(details["state"], "removed", details)
        self.assertEqual(details["attempt_list"][-1]["ended"], "removed", details)
        self.assertEqual((len(saver.said("start")), saver.said("save")), (1, []))
        # The machine is free for the next job.
        follower = pool.submit("--name", "next", "--", "true")[0]
        self.assertEqual(pool.wait_state(follower, ["done", "failed"])["state"], "done")
        uses = pool.ask("report")["usage"]
        self.assertEqual(sum(line["jobs_done"] for line in uses), 1)
        self.check_crashed(pool)

    def stop_with_crash(self, place, count):
        """An array whose first job's end removes the others, which never run."""
        pool, curly = self.start(place, count)
        marks = os.path.join(pool.folder, "marks")
        os.makedirs(marks)
        os.chmod(marks, 0o777)
        batch_file = os.path.join(pool.folder, "stop.toml")
        with open(batch_file, "w") as f:
            f.write('[batch]\nstop_when = { output = "key.txt" }\n[[job]]\nprogram = "sh"\n'
                    'arguments = ["-c", "mktemp %s/XXXXXX; echo 42 > key.txt"]\n'
                    'outputs = ["key.txt"]\ncount = 1000\n' % marks)
        submitted = pool.ask("submit", batch_file)
        first, batch = submitted["jobs"]["first"], submitted["batch"]
        status, out, err = pool.run("wait", "--batch", batch)
        self.assertEqual((status, out), (0, "1000 jobs: 1 done, 999 removed\n"), err)
        # The number of commits for the end depends on timing: the last steps may not occur
        # before it. The batch must stay stopped through a crash there, too.
        if not self.crashes(pool):
            follower = pool.submit("--name", "next", "--", "true")[0]
            self.assertEqual(pool.wait_state(follower, ["done", "failed"])["state"], "done")
            self.assertEqual(pool.run("wait", "--batch", batch)[1], out)
        self.assertEqual(len(os.listdir(marks)), 1, "the program ran once")
        self.assertEqual(pool.job(first)["state"], "done")
        last = pool.job(first + 999)
        self.assertEqual(last["reason"], "the batch has stopped: job %d left key.txt" % first)
        self.assertEqual(last["attempts"], 0)
        self.check_crashed(pool)

    def crashes(self, pool):
        with open(os.path.join(pool.folder, "server.log")) as log:
            return log.read().count("died of signal 9")

    def check_crashed(self, pool):
        self.assertEqual(self.crashes(pool), 1, "the crash was reached")

    def check_done_once(self, pool, job, details, output):
        jobs = pool.ask("ls", "--all")["jobs"]
        self.assertEqual(len(jobs), 1, "submitted once")
        done = [a for a in details["attempt_list"] if a["ended"] == "done"]
        self.assertEqual(len(done), 1, "one attempt counts")
        uses = pool.ask("report")["usage"]
        self.assertEqual(sum(line["jobs_done"] for line in uses), 1)
        status, out, err = pool.run("fetch", job, "--into", os.path.join(pool.folder, "results"))
        self.assertEqual(status, 0, err)
        with open(os.path.join(pool.folder, "results", "out")) as f:
            self.assertEqual(f.read(), output)


def add(what, run, place, count):
    setattr(CrashSteps, "test_%s%s_%d" % (what, place, count), lambda self: run(self, place, count))


# With sanitizers a third of them: it is the same code, four times as slow.
_EVERY = 3 if harness.SANITIZED else 1
for _what, _places, _run in (("alone_", PLACES, CrashSteps.run_with_crash),
                             ("evicted_", EVICTED, CrashSteps.evict_with_crash),
                             ("removed_", REMOVED, CrashSteps.remove_with_crash),
                             ("stopped_", STOPPED, CrashSteps.stop_with_crash)):
    for _place, _counts in _places.items():
        for _count in _counts[::_EVERY]:
            add(_what, _run, _place, _count)

if __name__ == "__main__":
    unittest.main()
