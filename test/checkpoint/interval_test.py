"""The machine's own history of idle times reaches its jobs, and outlives its client."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness


class Interval(unittest.TestCase):
    def mean_idle(self, pool):
        """Seconds, as a job is told."""
        job = pool.submit("--", "sh", "-c", "echo $SUBLET_MEAN_IDLE")[0]
        pool.wait_state(job, "done")
        return int(pool.output(job)[1])

    def wait_busy(self, pool, busy):
        harness.wait_for(lambda: (pool.sublet("machines")["machines"][0]["state"] != "idle") == busy,
                         "the machine to be %s" % ("busy" if busy else "idle"))

    def ends(self, client):
        try:
            with open(os.path.join(client.state, "idle-history")) as f:
                return int(dict(line.split(" ", 1) for line in f)["ends"])
        except FileNotFoundError:
            return None

    def test_the_owner_returns(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            self.assertGreaterEqual(self.mean_idle(pool), 7200)
            for _ in range(3):
                curly.owner("active")
                self.wait_busy(pool, True)
                curly.owner("away")
                self.wait_busy(pool, False)
            # Of two hours and three times of moments.
            mean = self.mean_idle(pool)
            self.assertTrue(1800 <= mean < 3600, mean)
            harness.wait_for(lambda: self.ends(curly) == 3, "the history to be written")
            curly.stop()
            curly.start()
            mean = self.mean_idle(pool)
            self.assertTrue(1800 <= mean < 3600, mean)


if __name__ == "__main__":
    unittest.main()
