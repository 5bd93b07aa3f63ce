"""Jobs that may be started at some hours only, in the server's local time, or not before an instant:
they wait, `sublet why` says for how long, others are served, and a restart changes nothing."""

import datetime
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

# Of the server and of the command: what is UTC here is something else there.
os.environ["TZ"] = "XYZ-05:30"
time.tzset()


def clock(hours):
    """The time of day so many hours from now."""
    return (datetime.datetime.now() + datetime.timedelta(hours=hours)).strftime("%H:%M")


class Hours(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.pool.__enter__()
        self.addCleanup(self.pool.close)
        # No boundary can come while the test runs.
        self.open = "%s-%s" % (clock(-3), clock(3))
        self.closed = "%s-%s" % (clock(3), clock(5))
        self.why_closed = "its hours are %s: they open in 3 h" % self.closed

    def start(self, slots=1):
        self.pool.start_server()
        self.pool.client("curly", slots=slots).start()
        self.pool.wait_machines(1)

    def why(self, job):
        return self.pool.run("why", str(job))[1]

    def batch(self, *lines):
        path = os.path.join(self.pool.folder, "batch.toml")
        with open(path, "w") as f:
            f.write("\n".join(("[[job]]", "program = 'true'") + lines) + "\n")
        return path

    def test_open_and_closed(self):
        self.start()
        pool = self.pool
        night = pool.submit("--count", "3", "--hours", self.closed, "--", "true")
        day, = pool.submit("--hours", self.open, "--", "true")
        pool.wait_state(day, "done")
        for job in night:
            self.assertEqual("waiting", pool.job_state(job))
            self.assertIn(self.why_closed, self.why(job))
        shown = pool.job(night[0])
        self.assertEqual(self.closed, shown["description"]["hours"])
        self.assertIn(self.closed, pool.run("show", night[0])[1])
        self.assertEqual(0, shown["starts_at_us"])
        pool.kill_server()  # and the supervisor starts it again
        pool.wait_serving()
        pool.wait_machines(1)
        day, = pool.submit("--hours", self.open, "--", "true")
        pool.wait_state(day, "done")
        self.assertIn(self.why_closed, self.why(night[0]))
        # What runs goes on; what is closed is started by nobody, whatever is done to it.
        pool.sublet("hold", night[1])
        pool.sublet("release", night[1])
        self.assertEqual("waiting", pool.job_state(night[1]))

    def test_not_before(self):
        self.start(slots=2)
        pool = self.pool
        soon = datetime.datetime.now().replace(microsecond=0) + datetime.timedelta(seconds=4)
        local, = pool.submit("--not-before", soon.isoformat(" "), "--", "true")
        zone = soon.astimezone(datetime.timezone(datetime.timedelta(hours=1))).isoformat()
        batch, = pool.submit(self.batch("not_before = %s" % zone))
        at_once, = pool.submit("--not-before", "2020-01-01", "--", "true")
        later = datetime.datetime.now() + datetime.timedelta(hours=30)
        late, = pool.submit("--not-before", later.strftime("%Y-%m-%d %H:%M"), "--", "true")
        pool.wait_state(at_once, "done")
        self.assertIn("it may not start before %s (UTC+05:30): in 30 h" %
                      later.strftime("%Y-%m-%d %H:%M"), self.why(late))
        for job in (local, batch):
            shown = pool.wait_state(job, "done")
            self.assertEqual(int(soon.timestamp()) * 1000000, shown["description"]["not_before_us"])
            attempt, = pool.attempts(job)
            self.assertGreaterEqual(attempt["started_us"], soon.timestamp() * 1e6)
        self.assertEqual("waiting", pool.job_state(late))

    def test_a_batch_file(self):
        self.start()
        pool = self.pool
        job, = pool.submit(self.batch("hours = 'mon - SUN  %s'" % self.closed))
        self.assertEqual("mon-sun " + self.closed, pool.job(job)["description"]["hours"])
        for line, said in (
                ("hours = 'tus'", ":3:9: hours: column 1: 'tus' is not a day: mon"),
                ("hours = ''", ":3:9: hours: column 1: a window is missing"),
                ("hours = 'sat 9-17'", "hours: column 5: '9' is not a time such as 19:00"),
                ("hours = 9", ":3:9: hours must be a string"),
                ("not_before = 'soon'", ":3:14: not_before is not a valid time: write it as"),
                ("not_before = 12:00:00", ":3:14: not_before is not a valid time"),
                ("not_before = 2026-02-30", ":3:")):
            status, _, err = pool.run("submit", self.batch(line))
            self.assertNotEqual(0, status, line)
            self.assertIn(said, err)
        for words, said in ((("--hours", "7:00-7:00"), "column 1: the window begins and ends"),
                            (("--not-before", "tomorrow"), "'tomorrow' is not a valid time")):
            status, _, err = pool.run("submit", *words, "--", "true")
            self.assertNotEqual(0, status)
            self.assertIn(said, err)


if __name__ == "__main__":
    unittest.main()
