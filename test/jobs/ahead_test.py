"""Jobs that a machine holds beyond its slots, because others there end at once: they start without
asking, and come back without loss if the owner returns, or a long job, a crash or a stop keeps them
from starting."""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

# Any job counts as short, however slow this machine is, and one that is ahead stays.
ANY_IS_SHORT = "scheduling.short_run=60 s"
STAYS = "scheduling.ahead_wait=60 s"


class Ahead(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)

    def start(self, *sets, **options):
        self.pool.start_server([ANY_IS_SHORT, *sets])
        self.curly = self.pool.client("curly", **options).start()
        self.pool.wait_machines(1)

    def hold_one_ahead(self):
        """A short job is done, a long one runs, and one waits behind it with its shepherd."""
        self.long, self.ahead = self.submit_two()
        self.pool.wait_state(self.long, "running")
        self.wait_held(2)
        self.assertEqual(self.job(self.ahead)["state"], "placed")
        harness.wait_for(lambda: len(self.curly.attempts()) == 2, "it to be handed over")

    def submit_two(self):
        """A long one and one behind it, when a short one before them is done. All in one batch, so
        that both wait when that ends."""
        batch = os.path.join(self.pool.folder, "jobs.toml")
        with open(batch, "w") as f:
            for program in ('"true"', '"sleep"\narguments = ["1000"]', '"true"'):
                f.write("[[job]]\nprogram = %s\n" % program)
        first, *two = self.pool.submit(batch)
        self.pool.wait_state(first, "done")
        return two

    def job(self, job):
        return self.pool.job(job)

    def folder(self, job):
        return os.path.join(self.curly.state, "attempts", "%d.1" % job)

    def record(self, key):
        with open(os.path.join(self.folder(self.long), "record")) as file:
            return dict(line.split(" ", 1) for line in file.read().splitlines() if " " in line)[key]

    def shepherd(self):
        return int(self.record("shepherd_pid"))

    def wait_held(self, count):
        harness.wait_for(lambda: len(self.pool.machines()[0]["running"]) == count,
                         "%d attempts on the machine\n%s" % (count, self.pool.all_logs()))

    def ends(self, job):
        return [attempt["ended"] for attempt in self.job(job)["attempt_list"]]

    def test_many_short_jobs(self):
        """Each is run once, and whatever came back is done as well."""
        self.start(slots=2)
        jobs = self.pool.submit("--count", "100", "--", "true")
        for job in jobs:
            details = self.pool.wait_state(job, ["done", "failed"])
            self.assertEqual(details["state"], "done")
            self.assertEqual(details["evictions"], 0)
            self.assertEqual(self.ends(job)[-1], "done")
            self.assertEqual(set(self.ends(job)[:-1]) - {"refused"}, set())
        self.assertEqual(self.curly.attempts(), [])

    def test_the_owner_returns(self):
        self.start(STAYS)
        self.hold_one_ahead()
        self.curly.owner("active")
        for job in (self.long, self.ahead):
            self.pool.wait_state(job, "waiting")
        # The server may hear of the end before it hears of the owner, and ask again.
        self.assertEqual(self.ends(self.long)[0], "owner came back")
        self.assertEqual(set(self.ends(self.long)[1:]) - {"refused"}, set())
        self.assertEqual(self.job(self.long)["evictions"], 1)
        self.assertEqual(set(self.ends(self.ahead)), {"refused"})
        details = self.job(self.ahead)
        self.assertEqual(details["evictions"], 0)
        self.assertEqual(details["attempt_list"][0]["reason"], "the machine refused it (the owner is here)")
        self.assertEqual(self.curly.attempts(), [])
        self.pool.sublet("rm", self.long)
        self.pool.client("moe").start()
        self.pool.wait_state(self.ahead, "done")

    def test_behind_a_long_one(self):
        """It is called back after 100 ms, and runs elsewhere meanwhile."""
        self.start()
        self.curly.owner("active")
        self.pool.client("moe").start()
        self.pool.wait_machines(1)
        self.pool.clients["moe"].owner("active")
        self.pool.wait_machines(2, "busy")
        self.curly.owner("away")
        self.pool.wait_machines(1)
        self.long, self.ahead = self.submit_two()
        self.pool.wait_state(self.long, "running")
        harness.wait_for(lambda: self.ends(self.ahead) == ["refused"], "it to come back")
        self.assertEqual(self.job(self.ahead)["evictions"], 0)
        self.pool.clients["moe"].owner("away")
        self.pool.wait_state(self.ahead, "done")
        self.assertEqual(self.job(self.long)["state"], "running")

    def test_the_client_is_killed(self):
        """Nobody else names an order that has not started: it is lost without harm."""
        self.start(STAYS)
        self.hold_one_ahead()
        self.curly.kill()
        self.curly.start()
        harness.wait_for(lambda: self.curly.attempts() == ["%d.1" % self.long], "it to be discarded")
        harness.wait_for(lambda: self.ends(self.ahead)[:1] == ["machine lost"], "it to be missed")
        self.assertEqual(self.job(self.ahead)["evictions"], 0)
        self.pool.sublet("rm", self.long)
        self.pool.wait_state(self.ahead, "done")

    def test_the_client_is_killed_and_the_long_one_ends(self):
        """Nobody starts it while there is no client."""
        self.start(STAYS)
        self.hold_one_ahead()
        self.curly.kill()
        shepherd = self.shepherd()
        os.kill(int(self.record("job_pid")), signal.SIGKILL)
        harness.wait_for(lambda: not harness.alive(shepherd), "its shepherd to end")
        folder = self.folder(self.ahead)
        self.assertEqual([os.path.exists(os.path.join(folder, name)) for name in ("order", "record")],
                         [True, False])
        self.curly.start()
        self.pool.wait_state(self.ahead, "done")
        # A restarted client has no lease for it until it has renewed.
        self.assertIn(self.ends(self.ahead), (["done"], ["out of touch", "done"]))

    def test_the_shepherd_is_killed(self):
        """The attempt that it runs is lost, the other one has another shepherd."""
        self.start(STAYS)
        self.hold_one_ahead()
        os.kill(self.shepherd(), signal.SIGKILL)
        self.pool.wait_state(self.ahead, "done")
        self.assertEqual(self.ends(self.ahead), ["done"])
        self.assertEqual(self.ends(self.long)[0], "machine lost")

    def test_the_one_before_is_removed(self):
        """Whoever waits behind it starts with another shepherd, in the same attempt."""
        self.start(STAYS)
        for _ in range(10):
            self.hold_one_ahead()
            self.pool.sublet("rm", self.long)
            self.pool.wait_state(self.ahead, "done")
            self.assertEqual(self.ends(self.ahead), ["done"])

    def test_the_client_is_stopped(self):
        self.start(STAYS)
        self.hold_one_ahead()
        self.curly.stop()
        harness.wait_for(lambda: self.ends(self.ahead) == ["refused"], "it to come back")
        self.pool.sublet("rm", self.long)
        self.curly.start()
        self.pool.wait_state(self.ahead, "done")

    def test_the_server_is_killed(self):
        """It keeps its attempt, and starts when the long one has left, though nobody is asked."""
        self.start(STAYS)
        self.hold_one_ahead()
        self.pool.kill_server()
        self.pool.wait_serving()
        self.wait_held(2)
        self.pool.sublet("rm", self.long)
        self.pool.wait_state(self.ahead, "done")
        self.assertEqual(self.ends(self.ahead), ["done"])

    def test_removed_before_it_starts(self):
        self.start(STAYS)
        self.hold_one_ahead()
        self.pool.sublet("rm", self.ahead)
        self.assertEqual(self.job(self.ahead)["state"], "removed")
        self.wait_held(1)
        self.assertEqual(self.curly.attempts(), ["%d.1" % self.long])
        self.assertEqual(self.ends(self.ahead), ["refused"])

    def test_turned_off(self):
        self.start(STAYS, extra=["--set", "ahead=0"])
        self.long, self.ahead = self.submit_two()
        self.pool.wait_state(self.long, "running")
        self.assertEqual(self.job(self.ahead)["state"], "waiting")


if __name__ == "__main__":
    unittest.main()
