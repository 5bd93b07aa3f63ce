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


@unittest.skipUnless(os.path.exists(ROOT + "/cgroup.controllers")
                     and os.path.isdir("/run/systemd/system"), "needs systemd and cgroup v2 alone")
class Delegated(unittest.TestCase):
    """An ordinary user's client in a unit with Delegate=, as the user's unit has it."""

    def in_a_unit(self, test, enter=""):
        if os.geteuid() != 0:
            self.skipTest("needs root to start it")
        with harness.Pool() as pool:
            os.chown(pool.folder, harness.NOBODY, harness.NOBODY)
            run = ["systemd-run", "-q", "--wait", "--pipe", "--uid=nobody",
                   "-p", "Delegate=memory pids", "-E", "HOME=" + pool.folder,
                   "-E", "TMPDIR=" + pool.folder,
                   "-E", "SUBLET_TEST_PATIENCE=%g" % harness.PATIENCE,
                   "sh", "-c", enter + 'exec "$0" "$@"', "/usr/bin/python3", "-B",
                   os.path.abspath(__file__), "Inside." + test]
            done = subprocess.run(run, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertNotIn("skipped", done.stdout)

    def test_it_kills_and_freezes_by_them(self):
        self.in_a_unit("kills_and_freezes")

    def test_in_a_subgroup_it_has_controllers(self):
        """As with DelegateSubgroup=daemons, which systemd knows from 254 on."""
        self.in_a_unit("controllers", "cd %s/$(sed 's/0:://' /proc/self/cgroup) && mkdir daemons && "
                                      "echo 0 >daemons/cgroup.procs && cd / && " % ROOT)


class Inside(unittest.TestCase):
    def a_job(self, look):
        with harness.Pool() as pool:
            pool.start_server()
            client = pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("--", "sleep", "1000")[0]
            pool.wait_state(job, ["running"])
            here = client.running()
            self.assertIsNotNone(here, pool.all_logs())
            record = {key: urllib.parse.unquote(value)
                      for key, value in client.record(here).items()}
            unit = read("/proc/self/cgroup").removeprefix("0::").removesuffix("/daemons")
            self.assertTrue(record["cgroup_unified"].startswith(ROOT + unit + "/sublet-"), record)
            self.assertIn(str(record["job_pid"]),
                          read(record["cgroup_unified"], "cgroup.procs").split())
            look(record)
            client.owner("active")
            pool.wait_state(job, ["waiting"])
            harness.wait_for(lambda: not os.path.exists(record["cgroup_unified"]),
                             "the group to be removed")

    def kills_and_freezes(self):
        self.a_job(lambda record: self.assertEqual(record.get("cgroup_cpu", ""), ""))

    def controllers(self):
        def look(record):
            # cpu.idle would count within the unit only.
            self.assertEqual(record.get("cgroup_cpu", ""), "")
            self.assertEqual(record["cgroup_memory"], record["cgroup_unified"])
            self.assertNotEqual(read(record["cgroup_memory"], "memory.max"), "max")
        self.a_job(look)


if __name__ == "__main__":
    unittest.main()
