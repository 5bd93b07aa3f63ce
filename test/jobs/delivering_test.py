"""Outputs that take longer than a checkpoint would be waited for."""

import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import giop
import harness

RATE = 2 << 20  # bytes a second
SIZE = int(os.environ.get("SUBLET_DELIVERY_BYTES", 64 << 20))


class SlowLink(giop.Relay):
    """Passes what callers send at RATE, on each connection; records nothing."""

    def passed(self, stream, which, data):
        if which == 0:
            time.sleep(len(data) / RATE)


class Delivering(unittest.TestCase):
    def setUp(self):
        # An attempt that is only leaving would be given up after 15 s; this delivery takes 32 s.
        self.pool = harness.Pool(["scheduling.lease=10 s", "scheduling.leaving_wait=15 s"])
        self.addCleanup(self.pool.close)
        self.pool.start_server()

    def test_a_slow_delivery_completes(self):
        SlowLink(self.pool.socket)
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        job = self.pool.submit("--output", "big", "--", "/bin/sh", "-c",
                               "head -c %d /dev/urandom > big" % SIZE)[0]
        shown = self.pool.wait_state(job, "delivering")
        self.assertEqual([one["state"] for one in shown["attempt_list"]], ["delivering"])
        self.assertEqual(shown["reason"],
                         "attempt 1 has ended on curly; its outputs are on their way")
        listed = self.pool.sublet("ls", "--state", "delivering")["jobs"]
        self.assertEqual([one["id"] for one in listed], [job])
        shown = self.pool.wait_state(job, ["done", "failed"], harness.PATIENCE + 2 * SIZE / RATE)
        self.assertEqual((shown["state"], shown["attempts"]), ("done", 1), shown["reason"])
        self.assertEqual([output["size"] for output in shown["outputs"]], [SIZE])


if __name__ == "__main__":
    unittest.main()
