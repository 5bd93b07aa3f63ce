"""What no machine of the pool could run is refused, unless it is to wait; who waits for a job is
told why nothing runs, and told again when the reason changes."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

CONFLICT = 6
HUGE = ("--memory", "1000 TB")


class Needs(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.pool.__enter__()
        self.addCleanup(self.pool.close)
        self.pool.start_server()

    def waiting(self, *words):
        """A command that submits and waits, the job's id, and how it was told the first reason."""
        command = subprocess.Popen([os.path.join(harness.BIN, "sublet"), "submit", "--wait", *words,
                                    "--", "true"], stdout=subprocess.DEVNULL, text=True,
                                   stderr=subprocess.PIPE, env=self.pool.environment(),
                                   cwd=self.pool.folder)
        self.addCleanup(command.stderr.close)
        self.addCleanup(command.wait)
        self.addCleanup(command.kill)
        job = int(command.stderr.readline().split()[1])
        with harness.Pace() as pace:
            reason = self.next_reason(command, job)
        pace.check(self, 2, "the reason")
        return command, job, reason

    def next_reason(self, command, job):
        start = "job %d waits: " % job
        for line in command.stderr:
            if line.startswith(start):
                return line[len(start):-1]
        self.fail("the command ended without a reason")

    def refused(self, *words):
        status, out, err = self.pool.run("submit", *words, "--", "true")
        self.assertEqual((status, out), (CONFLICT, ""), err)
        return err

    def test_reasons_that_change(self):
        command, job, reason = self.waiting()
        self.assertEqual(reason,
                         "no machine is in the pool: start sublet-client on a workstation")
        curly = self.pool.client("curly")
        curly.owner("active")
        curly.start()
        self.assertEqual(self.next_reason(command, job), "1 machine fits, used by its owner")
        # Asked for every 5 s, and told each time, however often it has changed.
        for _ in range(3):
            for word, told in (("drain", "drained by an administrator"), ("resume", "used by its owner")):
                self.pool.sublet("admin", word, "curly")
                with harness.Pace() as pace:
                    self.assertEqual(self.next_reason(command, job), "1 machine fits, " + told)
                pace.check(self, 7, "the changed reason")
        shown = self.pool.job(job)
        self.assertEqual((shown["forecast"], shown["starts_at_us"]),
                         ("not known: the machines that fit are used by their owners, silent, "
                          "drained or promised to other jobs", 0))
        curly.owner("away")
        self.assertEqual(command.wait(harness.PATIENCE), 0, command.stderr.read())

    def test_lists_give_no_reason_before_the_first_attempt(self):
        """Why such a job waits is found for `why` and `show` only."""
        job = self.pool.submit("--", "true")[0]
        self.assertEqual(self.pool.sublet("ls")["jobs"][0]["reason"], "")
        status, out, _ = self.pool.run("ls")
        self.assertEqual((status, out.split("\n")[0].split()),
                         (0, ["ID", "NAME", "USER", "STATE", "FOR"]))
        self.assertIn("no machine is in the pool", self.pool.job(job)["reason"])
        self.pool.run("hold", job)
        self.pool.run("release", job)
        self.assertEqual(self.pool.sublet("ls")["jobs"][0]["reason"], "released")

    def test_each_line_is_told(self):
        """Also one that was too soon after the last one, when nothing changes any more."""
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        finish = os.path.join(self.pool.folder, "finish")
        command = subprocess.Popen(
            [os.path.join(harness.BIN, "sublet"), "submit", "--wait", "--", "sh", "-c",
             "until [ -e %s ]; do sleep 0.1; done" % finish], stdout=subprocess.DEVNULL, text=True,
            stderr=subprocess.PIPE, env=self.pool.environment(), cwd=self.pool.folder)
        self.addCleanup(command.stderr.close)
        self.addCleanup(command.wait)
        self.addCleanup(command.kill)
        for line in command.stderr:
            if line == "0 of 1 done, 1 running\n":
                break
        else:
            self.fail("it was not told")
        open(finish, "w").close()
        self.assertEqual(command.wait(harness.PATIENCE), 0)

    def test_only_what_no_machine_could_run(self):
        # Nobody knows yet what machines will come.
        early = self.pool.submit(*HUGE, "--", "true")[0]
        curly = self.pool.client("curly").start()
        self.pool.wait_machines(1)
        err = self.refused(*HUGE)
        self.assertRegex(err, "no machine has 909 TiB of memory .largest: .*--even-so")
        self.assertEqual([j["id"] for j in self.pool.sublet("ls")["jobs"]], [early])
        command, job, reason = self.waiting("--even-so", *HUGE)
        self.assertTrue(reason.startswith("no machine has 909 TiB of memory"), reason)
        shown = self.pool.job(job)
        self.assertEqual((shown["forecast"], shown["starts_at_us"]), ("", 0))
        self.assertNotIn("starts", self.pool.run("show", job)[1])
        self.pool.sublet("rm", job)
        command.wait(harness.PATIENCE)

    def test_machines_that_come_back(self):
        """A machine that was switched off is still known, also to a restarted server."""
        curly = self.pool.client("curly").start()
        self.pool.wait_machines(1)
        os_name = self.pool.machines()[0]["os"]
        self.assertEqual(curly.stop(), 0)
        self.pool.wait_machines(1, "gone")
        for _ in range(2):
            self.pool.submit("--os", os_name, "--", "true")
            self.assertIn("no machine runs plan9", self.refused("--os", "plan9"))
            self.pool.kill_server()
            self.pool.wait_serving()

    def test_an_ordinary_run_although_it_was_to_wait(self):
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        self.assertIn("JobDescription.even_so", self.pool.sublet("about")["capabilities"])
        self.assertEqual(self.pool.run("submit", "--even-so", "--wait", "--", "true")[0], 0)


if __name__ == "__main__":
    unittest.main()
