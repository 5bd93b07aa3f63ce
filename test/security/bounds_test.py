"""What a job gets of a workstation if it asks for nothing: its memory."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness


class Bounds(unittest.TestCase):
    def test_memory(self):
        """So many slots that each one's part is small."""
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly", slots=400, extra=["--set", "memory_reserve=1 TiB"]).start()
            pool.wait_machines(1)
            with open("/proc/meminfo") as f:
                machine = int(f.readline().split()[1]) * 1024
            part = machine // 2 // 400
            job = pool.submit("--", "tail", "/dev/zero")[0]
            details = pool.wait_state(job, ["failed"])
            last = details["attempt_list"][-1]
            self.assertEqual(last["ended"], "over its limits", last)
            self.assertIn("its slot's part of this machine's memory (", last["reason"])
            self.assertIn("--memory", last["reason"])
            self.assertIn(" MiB)" if part < 1 << 30 else " GiB)", last["reason"])
            if "memory limit is enforced per process" in pool.log("client-curly"):
                return  # without a cgroup its allocations fail, and it ends by itself
            limited = pool.submit("--memory", "20 MiB", "--", "tail", "/dev/zero")[0]
            last = pool.wait_state(limited, ["failed"])["attempt_list"][-1]
            self.assertEqual(last["ended"], "over its limits", last)
            self.assertIn("all of its memory limit (20 MiB)", last["reason"])


if __name__ == "__main__":
    unittest.main()
