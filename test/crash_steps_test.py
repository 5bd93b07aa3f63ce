"""The server is killed between every two steps of a job's way: nothing is lost
and nothing is done twice."""

import os
import unittest

import harness

# How often each step is passed before the job is done; the first commits and
# replies are those of the machine that joins.
PLACES = {"commit": range(1, 9), "committed": range(1, 9), "reply": range(1, 12), "dispatch": [1],
          "dispatched": [1], "report": [1], "reported": [1]}


class CrashSteps(unittest.TestCase):
    def run_with_crash(self, place, count):
        """One job through a pool whose server dies once at PLACE:COUNT."""
        crash = "debug.crash_at=%s:%d" % (place, count)
        with harness.Pool(server_sets=["scheduling.lease=6 s", crash]) as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            marks = os.path.join(pool.folder, "marks")
            os.makedirs(marks)
            os.chmod(marks, 0o777)
            job = pool.submit("--name", "once", "--output", "out", "--", "sh", "-c",
                              "mktemp %s/XXXXXX; echo 42 > out" % marks)[0]
            details = pool.wait_state(job, ["done", "failed"])
            self.assertEqual(details["state"], "done", details)
            self.check_not_twice(pool, job, details, marks)
            with open(os.path.join(pool.folder, "server.log")) as log:
                self.assertIn("died of signal 9", log.read(), "the crash was reached")

    def check_not_twice(self, pool, job, details, marks):
        jobs = pool.sublet("ls", "--all")["jobs"]
        self.assertEqual(len(jobs), 1, "submitted once")
        done = [a for a in details["attempt_list"] if a["ended"] == "done"]
        self.assertEqual(len(done), 1, "one attempt counts")
        uses = pool.sublet("report")["usage"]
        self.assertEqual(sum(line["jobs_done"] for line in uses), 1)
        # A start that the server never heard of may have been lost with its
        # machine's answer, but what ran and ended is in the books.
        self.assertEqual(len(os.listdir(marks)), 1, "the program ran once")
        status, out, err = pool.run("fetch", job, "--into", os.path.join(pool.folder, "results"))
        self.assertEqual(status, 0, err)
        with open(os.path.join(pool.folder, "results", "out")) as f:
            self.assertEqual(f.read(), "42\n")


def add(place, count):
    def test(self):
        self.run_with_crash(place, count)
    setattr(CrashSteps, "test_%s_%d" % (place, count), test)


for _place, _counts in PLACES.items():
    for _count in _counts:
        add(_place, _count)

if __name__ == "__main__":
    unittest.main()
