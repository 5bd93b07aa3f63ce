"""What keeps jobs waiting beside free slots: machines that fail rest, and users and machines have
limits."""

import json
import os
import pwd
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness


class Rests(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)

    def machine(self, name):
        return [m for m in self.pool.machines() if m["name"] == name][0]

    def client_without_shepherd(self, name):
        """It can start no job until repair()."""
        client = self.pool.client(name)
        client.programs = os.path.join(self.pool.folder, "programs")
        os.mkdir(client.programs)
        for program in ("sublet-client", "sublet-loadmon", "sublet-shepherd"):
            shutil.copy(os.path.join(harness.BIN, program), client.programs)
        client.start()
        self.pool.wait_machines(1)
        self.shepherd = os.path.join(client.programs, "sublet-shepherd")
        os.rename(self.shepherd, self.shepherd + ".away")

    def repair(self):
        os.rename(self.shepherd + ".away", self.shepherd)

    def wait_resting(self, name):
        harness.wait_for(lambda: self.machine(name)["rests_until_us"], name + " to rest")

    def test_a_machine_that_cannot_start_jobs(self):
        """It rests, also when the server restarts; other machines do its work; an administrator ends it."""
        self.pool.start_server(["scheduling.rest_least=1 h"])
        self.client_without_shepherd("curly")
        job, = self.pool.submit("--", "true")
        self.wait_resting("curly")
        machine = self.machine("curly")
        self.assertEqual((machine["state"], machine["failures"]), ("idle", 3))
        sentence = r"it failed 3 times in a row, last: \S"
        status, out, err = self.pool.run("machines")
        self.assertRegex(out, r"curly +resting ")
        self.assertRegex(out, r"curly rests until \d\d:\d\d:\d\d: " + sentence)
        self.assertRegex(self.pool.run("why", job)[1],
                         "1 machine fits, resting after failures; machine curly rests for 60 min "
                         "more: " + sentence)
        self.pool.kill_server()
        self.pool.wait_serving()
        self.pool.wait_machines(1)
        after = self.machine("curly")
        for field in ("rests_until_us", "failures", "failure"):
            self.assertEqual(after[field], machine[field])
        self.pool.client("moe").start()
        self.pool.wait_state(job, "done")
        self.assertEqual(self.pool.attempts(job)[-1]["machine_name"], "moe")
        self.repair()
        self.pool.clients["moe"].stop()
        job, = self.pool.submit("--", "true")
        self.assertIn("resting after failures", self.pool.run("why", job)[1])
        self.assertEqual(self.pool.run("admin", "resume", "curly")[1],
                         "curly takes jobs again\n")
        self.pool.wait_state(job, "done")
        self.assertEqual((self.machine("curly")["rests_until_us"],
                          self.machine("curly")["failures"]), (0, 0))

    def test_a_rest_ends(self):
        """By itself; one success, and the machine starts anew."""
        self.pool.start_server(["scheduling.rest_least=1 s", "scheduling.rest_most=2 s"])
        self.client_without_shepherd("curly")
        job, = self.pool.submit("--", "true")
        self.wait_resting("curly")
        self.repair()
        self.pool.wait_state(job, "done")
        harness.wait_for(lambda: self.machine("curly")["failures"] == 0, "the failures to be over")

    def test_what_the_job_has_done_does_not_count(self):
        self.pool.start_server()
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        jobs = self.pool.submit("--count", 6, "--", "no-such-program")
        jobs += self.pool.submit("--count", 6, "--", "false")
        for job in jobs:
            self.pool.wait_state(job, "failed")
        self.assertEqual(self.machine("curly")["failures"], 0)
        for word in ("scheduling.rest_least=2 d", "scheduling.rest_most=1 s"):
            pool = harness.Pool()
            self.addCleanup(pool.close)
            pool.start_server([word], wait=False)
            self.assertEqual(pool.supervisor.wait(harness.PATIENCE), 2)
            self.assertIn("scheduling.rest_", pool.log("server"))


class Limits(unittest.TestCase):
    def test_of_users_and_machines(self):
        """They change while jobs run, and outlast a restart of the server."""
        me = pwd.getpwuid(os.geteuid()).pw_name
        pool = harness.Pool()
        self.addCleanup(pool.close)
        pool.start_server(["scheduling.most_per_user=2"])
        for count, name in enumerate(("curly", "moe")):  # the first two jobs get the first one
            pool.client(name, slots=2).start()
            pool.wait_machines(count + 1)
        gate = os.path.join(pool.folder, "gate")
        jobs = pool.submit("--count", 8, "--", "sh", "-c",
                           "until test -e %s; do sleep 0.02; done" % gate)

        def running():
            return [job for job in jobs if pool.job_state(job) == "running"]

        def wait_running(count):
            harness.wait_for(lambda: len(running()) == count, "%d jobs to run" % count)
        wait_running(2)
        self.assertIn("%s has 2 jobs on machines; the pool allows a user 2 at a time" % me,
                      pool.run("why", jobs[-1])[1])
        said = pool.sublet("admin", "policy", "--set", "most_per_user=0", "--set",
                           "most_per_machine=moe=1 2")
        self.assertEqual((said["parameters"]["most_per_user"],
                          said["parameters"]["most_per_machine"]), ("0", "2 moe=1"))
        wait_running(3)
        self.assertIn("2 machines fit: 1 full, 1 at its limit of jobs; ",
                      pool.run("why", jobs[-1])[1])
        self.assertEqual(sorted((m["name"], m["slots_free"]) for m in pool.machines()),
                         [("curly", 0), ("moe", 0)])
        pool.kill_server()
        pool.wait_serving()
        harness.wait_for(lambda: all(m["owner_away"] for m in pool.machines()),
                         "the machines to report")
        late, = pool.submit("--", "true")
        self.assertEqual((len(running()), pool.job_state(late)), (3, "waiting"))
        for words, complaint in ((["most_per_machine=moe"], "NAME=NUMBER"),
                                 (["most_per_user=-1"], "a whole number from 0 to 1000000")):
            status, out, err = pool.run("admin", "policy", "--set", *words)
            self.assertEqual((status, out), (3, ""), err)
            self.assertIn(complaint, err)
        pool.sublet("admin", "policy", "--reset")
        self.assertEqual(len(running()), 3)
        with open(gate, "w"):
            pass
        for job in jobs + [late]:
            pool.wait_state(job, "done")

    def test_of_a_batch(self):
        pool = harness.Pool()
        self.addCleanup(pool.close)
        pool.start_server()
        pool.client("curly", slots=4).start()
        pool.wait_machines(1)
        gate = os.path.join(pool.folder, "gate")
        program = ["sh", "-c", "until test -e %s; do sleep 0.02; done" % gate]
        jobs = pool.submit("--at-most", 2, "--count", 4, "--", *program)
        batch = os.path.join(pool.folder, "batch.toml")
        with open(batch, "w") as file:
            file.write('[batch]\nat_most = 1\n[defaults]\nprogram = "sh"\narguments = %s\n'
                       '[[job]]\n[[job]]\n' % json.dumps(program[1:]))
        jobs += pool.submit(batch)

        def states():
            return [pool.job_state(job) for job in jobs]
        expected = ["running"] * 2 + ["waiting"] * 2 + ["running", "waiting"]
        harness.wait_for(lambda: states() == expected, "three jobs to run")
        self.assertIn("its batch has 2 jobs on machines, and at most 2 at a time",
                      pool.run("why", jobs[3])[1])
        pool.kill_server()
        pool.wait_serving()
        harness.wait_for(lambda: all(m["owner_away"] for m in pool.machines()),
                         "the machine to report")
        pool.wait_state(pool.submit("--", "true")[0], "done")
        self.assertEqual(states(), expected)
        with open(gate, "w"):
            pass
        for job in jobs:
            pool.wait_state(job, "done")
        spans = [(pool.attempts(job)[0]["decided_us"], pool.attempts(job)[0]["finished_us"])
                 for job in jobs]
        for group, most in ((spans[:4], 2), (spans[4:], 1)):
            for decided, _ in group:
                self.assertLessEqual(sum(a <= decided < b for a, b in group), most)
        for word in ("0", "1000001"):
            status, out, err = pool.run("submit", "--at-most", word, "--", "true")
            self.assertEqual((status, out), (2, ""), err)
            self.assertIn("--at-most must be between 1 and 1000000", err)


if __name__ == "__main__":
    unittest.main()
