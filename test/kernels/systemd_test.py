"""What systemd does to cgroups beside our own: it disables controllers that none of its units
needs. Only where systemd is process 1 and cgroup v2 is alone; test/kernels/debian_vm has both."""

import os
import subprocess
import sys
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

ROOT = "/sys/fs/cgroup"


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read().strip()


@unittest.skipUnless(os.geteuid() == 0 and os.path.exists(ROOT + "/cgroup.controllers")
                     and os.path.isdir("/run/systemd/system"),
                     "needs root, systemd and cgroup v2 alone")
class Systemd(unittest.TestCase):
    def test_jobs_keep_their_weight(self):
        with harness.Pool() as pool:
            pool.start_server()
            client = pool.client("curly", slots=2).start()
            pool.wait_machines(1)
            first = pool.submit("--", "sleep", "1000")[0]
            pool.wait_state(first, ["running"])
            record = client.record(client.attempts()[0])
            cgroup = urllib.parse.unquote(record["cgroup_cpu"])
            self.assertEqual(read(cgroup, "cpu.idle"), "1")
            for command in (["systemctl", "daemon-reload"],
                            ["systemd-run", "-q", "--wait", "-p", "CPUWeight=50", "true"],
                            ["systemctl", "daemon-reload"]):
                subprocess.run(command, check=True)
                self.assertIn("cpu", read(ROOT, "cgroup.subtree_control").split(), command)
                self.assertEqual(read(cgroup, "cpu.idle"), "1", command)
            second = pool.submit("--", "true")[0]
            pool.wait_state(second, ["done"])
            client.owner("active")
            pool.wait_state(first, ["waiting"])
            client.stop()
            left = [name for name in os.listdir(ROOT) if name.startswith("sublet-")]
            self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
