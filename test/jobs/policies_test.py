"""The policy for the next job, and jobs' priorities, change while jobs run and wait: nothing is
lost, and nothing runs twice."""

import os
import pwd
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

# Each policy, and what it says of a job that it chose.
SENTENCES = {"fifo": "came first", "up-down": "up-down index", "random": "drawn at random",
             "fair-share": "CPU s for 1 share", "umol": "who has ",
             "fair-share-1998": "active, 1 share", "round-robin": "whose turn it is"}


ME = pwd.getpwuid(os.geteuid()).pw_name


class Policies(unittest.TestCase):
    def test_each_takes_over(self):
        with harness.Pool() as pool:
            pool.start_server(["scheduling.jobs=round-robin"])
            pool.client("curly").start()
            pool.wait_machines(1)
            gate = os.path.join(pool.folder, "gate-")
            jobs = pool.submit("--count", 1 + len(SENTENCES), "--", "sh", "-c",
                               "until test -e %s$0; do sleep 0.02; done" % gate, "{index}")

            def running():
                return [job for job in jobs if pool.job_state(job) == "running"]
            for policy, sentence in SENTENCES.items():
                harness.wait_for(running, "a job to run")
                job, = running()
                pool.stop_server()
                pool.start_server(["scheduling.jobs=" + policy])
                with open(gate + str(job - jobs[0]), "w"):
                    pass
                pool.wait_state(job, "done")
                harness.wait_for(running, "the next job to run")
                self.assertIn(sentence, pool.run("why", running()[0])[1], policy)
            for index in range(len(jobs)):
                with open(gate + str(index), "w"):
                    pass
            for job in jobs:
                pool.wait_state(job, "done")
                self.assertEqual(len(pool.attempts(job)), 1)

    def test_each_takes_over_under_load(self):
        """Without a restart, but for one in between, whose settings do not count. Of each round two
        jobs run while others wait and more are submitted."""
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly", slots=2).start()
            pool.wait_machines(1)
            gate = os.path.join(pool.folder, "gate-")
            jobs, before = [], "fair-share"
            for number, (policy, _) in enumerate(SENTENCES.items()):
                program = "until test -e %s%d; do sleep 0.02; done" % (gate, number)
                jobs += pool.submit("--count", 5, "--", "sh", "-c", program)

                def running():
                    return [job for job in jobs[-5:] if pool.job_state(job) == "running"]
                harness.wait_for(lambda: len(running()) == 2, "two jobs to run")
                self.assertIn(SENTENCES[before], pool.run("why", running()[1])[1], before)
                said = pool.sublet("admin", "policy", policy)
                self.assertEqual((said["parameters"]["jobs"], said["by"]), (policy, ME))
                if number == 3:
                    pool.stop_server()
                    pool.start_server(["scheduling.jobs=fair-share"])
                self.assertEqual(pool.sublet("admin", "policy"), said)
                self.assertEqual(pool.sublet("report")["policies"], said)
                jobs += pool.submit("--count", 10, "--", "true")
                with open(gate + str(number), "w"):
                    pass
                before = policy
            for job in jobs:
                pool.wait_state(job, "done")
                self.assertEqual(len(pool.attempts(job)), 1)

    def test_what_cannot_be_changes_nothing(self):
        with harness.Pool() as pool:
            pool.start_server(["scheduling.jobs=umol"])
            before = pool.sublet("admin", "policy")
            self.assertEqual((before["parameters"]["jobs"], before["by"]), ("umol", ""))
            for words, complaint in ((["nearest", "--set", "floor=0.5"], '"fifo" "round-robin"'),
                                     (["--set", "floor=2"], "a number from 0 to 1"),
                                     (["--set", "lease=60"], "what can: jobs, machines, victims, candidates")):
                status, out, err = pool.run("admin", "policy", *words)
                self.assertEqual((status, out), (3, ""), err)
                self.assertIn(complaint, err)
                self.assertEqual(pool.sublet("admin", "policy"), before)
            self.assertEqual(pool.sublet("admin", "policy", "fifo", "--set", "floor=0.5")
                             ["parameters"]["floor"], "0.5")
            after = pool.sublet("admin", "policy", "--reset")
            self.assertEqual((after["parameters"], after["by"]), (before["parameters"], ""))

    def test_the_machine_is_chosen(self):
        """Of a large idle machine and a small one, which joined later, a job of one core gets the
        small one if that is to be. `sublet why` says so; a wrong name and number are refused."""
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("large", slots=os.cpu_count() + 2).start()
            pool.wait_machines(1)
            core = str(min(os.sched_getaffinity(0)))
            pool.client("small", prefix=["taskset", "--cpu-list", core]).start()
            pool.wait_machines(2)
            for words, complaint in ((["machines=nearest"], '"longest-free" "best-fit"'),
                                     (["candidates=0"], "a whole number from 1 to 10000")):
                status, out, err = pool.run("admin", "policy", "--set", *words)
                self.assertEqual((status, out), (3, ""), err)
                self.assertIn(complaint, err)
            gate = os.path.join(pool.folder, "gate")
            program = ["sh", "-c", "until test -e %s; do sleep 0.02; done" % gate]

            def machine_of_next():
                job, = pool.submit("--", *program)
                pool.wait_state(job, "running")
                attempt = pool.attempts(job)[0]
                return job, attempt["machine_name"]
            self.assertEqual(machine_of_next()[1], "large")
            said = pool.sublet("admin", "policy", "--set", "machines=best-fit",
                               "--set", "candidates=10")
            self.assertEqual((said["parameters"]["machines"], said["parameters"]["candidates"]),
                             ("best-fit", "10"))
            job, machine = machine_of_next()
            self.assertEqual(machine, "small")
            self.assertIn("; machine small, which has the least left over: ",
                          pool.run("why", job)[1])
            self.assertEqual(machine_of_next()[1], "large")
            with open(gate, "w"):
                pass

    def test_the_fastest_machine_is_chosen(self):
        """For its program, when one has run. A number in a file stands in for what two of the
        clients would measure (below their setting `root`, as for device files); the third one
        measures. A restarted server knows the speeds and the runs."""
        with harness.Pool() as pool:
            pool.start_server(["scheduling.machines=fastest"])

            def root(speed):
                folder = os.path.join(pool.folder, "root-%g" % speed)
                os.makedirs(folder)
                with open(os.path.join(folder, "speed"), "w") as file:
                    file.write("%g\n" % speed)
                return ["--set", "root=" + folder]
            pool.client("slow", slots=2, extra=root(1)).start()
            pool.wait_machines(1)
            pool.client("fast", extra=root(2.5)).start()
            pool.wait_machines(2)

            def speeds():
                return {machine["name"]: machine["speed"] for machine in pool.machines()}
            self.assertEqual(speeds(), {"slow": 1, "fast": 2.5})
            self.assertRegex(pool.run("machines")[1], r"SPEED.*\n.* 1\.00 .*\n.* 2\.50 ")
            gate = os.path.join(pool.folder, "gate")
            waiting = "import os, time\nwhile not os.path.exists(%r): time.sleep(0.02)"

            def why_next(number):
                job, = pool.submit("--", sys.executable, "-c", waiting % (gate + str(number)))
                pool.wait_state(job, "running")
                return job, pool.run("why", job)[1]

            def open_gate(number, *jobs):
                with open(gate + str(number), "w"):
                    pass
                for job in jobs:
                    pool.wait_state(job, "done")
            first, why = why_next(1)
            self.assertIn("; machine fast, which is the fastest: speed 2.5", why)
            second, why = why_next(1)
            self.assertIn("; machine slow, which is the fastest: speed 1", why)
            open_gate(1, first, second)
            busy, = pool.submit("--", sys.executable, "-c",
                                "import time\nwhile time.process_time() < 1.2: pass")
            pool.wait_state(busy, "done")
            self.assertEqual(pool.attempts(busy)[0]["machine_name"], "fast")
            pool.stop_server()
            pool.start_server(["scheduling.machines=fastest"])
            pool.wait_machines(2)
            self.assertEqual(speeds(), {"slow": 1, "fast": 2.5})
            for machine, runs in (("fast", "1 run on such machines and 0 on others; speed 2.5"),
                                  ("slow", "0 runs on such machines and 1 on others; speed 1")):
                self.assertRegex(why_next(2)[1], "; machine %s, which is the fastest for its "
                                 r"program: \d.* CPU s expected by %s" % (machine, runs))
            open_gate(2)
            pool.client("curly").start()
            harness.wait_for(lambda: speeds().get("curly", 0) > 0, "a client to measure its speed")

    def test_a_job_prefers_machines(self):
        """Under fifo-idle, which takes the one that joined first; where its value is not known comes
        last. What is no number is refused."""
        with harness.Pool() as pool:
            pool.start_server()
            for number, name in enumerate(("one", "two", "three")):
                pool.client(name, slots=number + 1).start()
                pool.wait_machines(number + 1)

            def machine_for(*options):
                job, = pool.submit(*options, "--", "true")
                pool.wait_state(job, "done")
                attempt, = pool.attempts(job)
                return attempt["machine_name"], pool.job(job)["description"]["needs"]
            for prefer, machine in (("slots", "three"), ("0 - slots", "one"),
                                    ("1 / (slots - 1)", "two"), ("slots / 0", None)):
                chosen, needs = machine_for("--prefer", prefer)
                self.assertEqual(needs["prefer"], prefer)
                self.assertEqual(chosen, machine or chosen)
            for prefer, complaint in (
                    ("slots > 1", "`prefer`: column 1: this must be a number, and this is a truth"),
                    ("memory", "`prefer`: column 1: unknown name 'memory'; correct it; it may use ")):
                status, out, err = pool.run("submit", "--prefer", prefer, "--", "true")
                self.assertEqual((status, out), (3, ""), err)
                self.assertIn(complaint, err)
            batch = os.path.join(pool.folder, "batch.toml")
            with open(batch, "w") as file:
                file.write('[[job]]\nprogram = "true"\nneeds = { prefer = "slots" }\n')
            job, = pool.submit(batch)
            pool.wait_state(job, "done")
            self.assertEqual(pool.attempts(job)[0]["machine_name"], "three")

    def test_a_throttle_keeps_jobs_waiting(self):
        """Beside free slots; it goes on when the span is over, and when the throttle is off."""
        with harness.Pool() as pool:
            pool.start_server(["scheduling.throttle=2/h"])
            pool.client("curly", slots=4).start()
            pool.wait_machines(1)
            gate = os.path.join(pool.folder, "gate")
            jobs = pool.submit("--count", 4, "--", "sh", "-c",
                               "until test -e %s; do sleep 0.02; done" % gate)
            for job in jobs[:2]:
                pool.wait_state(job, "running")
            self.assertIn("given 2 places, as many as the throttle allows: the next in ",
                          pool.run("why", jobs[2])[1])
            self.assertEqual([pool.job_state(job) for job in jobs[2:]], ["waiting"] * 2)
            pool.sublet("admin", "policy", "--set", "throttle=off")
            for job in jobs[2:]:
                pool.wait_state(job, "running")
            said = pool.sublet("admin", "policy", "--set", "throttle=1/100 ms")
            self.assertEqual(said["parameters"]["throttle"], "1/100 ms")
            with open(gate, "w"):
                pass
            jobs += pool.submit("--count", 5, "--", "true")
            for job in jobs:
                pool.wait_state(job, "done")
            decided = sorted(pool.attempts(job)[0]["decided_us"] for job in jobs[4:])
            for earlier, later in zip(decided, decided[1:]):
                self.assertGreaterEqual(later - earlier, 100_000)

    def test_a_priority_changes_while_it_waits(self):
        with harness.Pool() as pool:
            pool.start_server()
            gate = os.path.join(pool.folder, "gate")
            pool.client("curly").start()
            pool.wait_machines(1)
            first, second, third = pool.submit(
                "--count", 3, "--", "sh", "-c", "until test -e %s; do sleep 0.02; done" % gate)
            pool.wait_state(first, "running")
            self.assertEqual(pool.run("priority", 5, third)[:2], (0, "gave priority 5 to 1 job\n"))
            self.assertEqual(pool.sublet("priority", -1, first, "--state", "running"),
                             {"changed": 1, "unchanged": 0})
            self.assertEqual(pool.run("priority", 5, third)[:2], (
                0, "gave priority 5 to 0 jobs; 1 unchanged (5 already, or ended)\n"))
            pool.stop_server()
            pool.start_server()
            self.assertEqual([job["priority"] for job in pool.sublet("ls")["jobs"]], [5, 0, -1])
            self.assertIn("priority   5\n", pool.run("show", third)[1])
            shown = pool.sublet("show", third)
            self.assertEqual((shown["priority"], shown["description"]["priority"]), (5, 0))
            with open(gate, "w"):
                pass
            for job in (first, second, third):
                pool.wait_state(job, "done")

            def started(job):
                return pool.attempts(job)[0]["started_us"]
            self.assertLess(started(third), started(second))
            status, _, err = pool.run("priority", 1, first)
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(pool.job(first)["priority"], -1)


class Accounts(unittest.TestCase):
    def as_nobody(self, pool, *words):
        """(status, stdout, stderr) of `sublet`."""
        os.chmod(pool.folder, 0o755)
        done = subprocess.run(
            harness.AS_NOBODY + [pool.public(os.path.join(harness.BIN, "sublet")), *words],
            cwd="/", env=pool.environment(), text=True, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=harness.PATIENCE)
        return done.returncode, done.stdout, done.stderr

    @unittest.skipUnless(os.geteuid() == 0, "jobs of two users: needs root")
    def test_two_users_count_as_one(self):
        """In the standings, reasons and limits. Jobs and usage stay each user's. At the next start
        of the server another list counts, for what runs, too."""
        sets = ["scheduling.jobs=up-down", "scheduling.most_per_user=1"]
        with harness.Pool() as pool:
            pool.start_server(sets + ["scheduling.accounts=lab=%s nobody" % ME])
            pool.client("curly", slots=2).start()
            pool.wait_machines(1)
            gate = os.path.join(pool.folder, "gate")
            program = ["sh", "-c", "until test -e %s; do sleep 0.02; done" % gate]
            job, = pool.submit("--", *program)
            pool.wait_state(job, "running")
            self.assertIn("first in the queue: @lab, up-down index ", pool.run("why", job)[1])
            status, _, err = self.as_nobody(pool, "submit", "--", *program)
            self.assertEqual(status, 0, err)
            nobodys = job + 1
            self.assertIn("@lab has 1 job on machines; the pool allows an account 1 at a time",
                          pool.run("why", nobodys)[1])
            self.assertEqual([(s["user"], s["active"]) for s in pool.sublet("report")["standings"]],
                             [("@lab", 2)])
            self.assertIn("@lab", pool.run("report")[1])
            one, = pool.sublet("report", "--user", ME)["standings"]
            self.assertEqual((one["user"], one["users"]), ("@lab", sorted([ME, "nobody"])))
            status, _, err = self.as_nobody(pool, "rm", str(job))
            self.assertEqual(status, 5, err)
            said = pool.sublet("admin", "shares", "@lab", "3")["shares"]
            self.assertEqual([(s["user"], s["shares"]) for s in said], [("@lab", 3)])
            status, _, err = pool.run("admin", "shares", "nobody", "3")
            self.assertEqual(status, 3, err)
            self.assertIn('user nobody is in account lab, whose shares count: use "@lab" instead', err)
            pool.stop_server()
            pool.start_server(sets + ["scheduling.accounts=desk=%s, other=nobody" % ME])
            pool.wait_state(nobodys, "running")
            self.assertIn("first in the queue: @other, ", pool.run("why", nobodys)[1])
            pool.wait_state(job, "running")
            active = {s["user"]: s["active"] for s in pool.sublet("report")["standings"]}
            self.assertEqual(active, {"@desk": 1, "@lab": 0, "@other": 1})
            with open(gate, "w"):
                pass
            for one in (job, nobodys):
                pool.wait_state(one, "done")
            self.assertEqual(sorted(line["group"]["user"] for line in
                                    pool.sublet("report", "users")["usage"]), ["nobody", ME])

    def test_wrong_lists(self):
        with harness.Pool() as pool:
            pool.start_server(["scheduling.accounts=lab=ann, lab-g=ann"], wait=False)
            self.assertEqual(pool.supervisor.wait(harness.PATIENCE), 2)
            self.assertIn("user 'ann' is listed in account lab and in account lab-g; a user can "
                          "be in only one account, once", pool.log("server"))


if __name__ == "__main__":
    unittest.main()
