"""The steps of each eviction are recorded: at the workstation, by the server, in reports."""

import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for
from training import TrainingCase

PYTHON = "/usr/bin/python3"  # which Debian's packages for Python are for
READER = """
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
print(json.dumps([(s.name, [v for _, v in sorted(s.labels.items())], s.value)
                  for family in text_string_to_metric_families(sys.stdin.read())
                  for s in family.samples]))
"""


def has_reader():
    return os.path.exists(PYTHON) and subprocess.run(
        [PYTHON, "-c", "import prometheus_client"], stderr=subprocess.DEVNULL).returncode == 0


STEPS = ["told", "demoted", "save_asked", "saved", "gone"]


class EvictionSteps(TrainingCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.curly = self.pool.client("curly").start()
        self.pool.wait_machines(1)

    def evict(self):
        """Evicts what runs; returns its steps as `show` has them, those that were taken."""
        name, = self.curly.attempts()
        job = int(name.split(".")[0])
        self.curly.owner("active")
        self.pool.wait_state(job, "waiting")
        # The server may hear of the end before it hears of the owner, and try this machine again.
        attempt = [one for one in self.pool.job(job)["attempt_list"]
                   if one["ended"] != "refused"][-1]
        attempt["gone_us"] = attempt["quiesce_us"]
        self.pool.sublet("rm", job)
        self.curly.owner("away")
        self.pool.wait_machines(1)
        return {step: attempt[step + "_us"] for step in STEPS if attempt[step + "_us"] >= 0}

    def run_shell(self, script):
        job = self.pool.submit("--save-deadline", "1s", "--", "sh", "-c", script + "touch ready; "
                               "while :; do sleep 0.05; done")[0]
        self.pool.wait_state(job, "running")
        wait_for(lambda: os.path.exists(os.path.join(
            self.curly.state, "attempts", "%d.1" % job, "work", "ready")), "the job to be ready")

    def say(self, *words):
        code, out, err = self.pool.run(*words)
        self.assertEqual((code, err), (0, ""))
        return out

    def history(self, *words):
        code, out, err = self.pool.run("owner", "history", "--json", "--state", self.curly.state,
                                       *words)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)["evictions"]

    def in_order(self, steps, names):
        self.assertEqual(sorted(steps), sorted(names), steps)
        times = [steps[name] for name in names]
        self.assertEqual(times, sorted(times), steps)

    def metrics(self):
        """What `sublet metrics` prints, as Prometheus's own library for Python reads it: for each
        sample its name and labels, and its value."""
        text = self.say("metrics")
        read = subprocess.run([PYTHON, "-c", READER], input=text, text=True, capture_output=True)
        self.assertEqual((read.returncode, read.stderr), (0, ""), text)
        return {(name, *labels): value for name, labels, value in json.loads(read.stdout)}

    @unittest.skipUnless(has_reader(), "python3-prometheus-client is not installed")
    def test_metrics(self):
        before = self.metrics()
        self.assertEqual(before["sublet_machines", "idle"], 1)
        self.assertEqual(before["sublet_evictions_last_hour",], 0)
        self.run_shell("")
        self.assertEqual(self.metrics()["sublet_jobs", "running"], 1)
        self.evict()
        after = self.metrics()
        self.assertEqual(after["sublet_evictions_last_hour",], 1)
        self.assertEqual(after["sublet_jobs", "running"], 0)
        for step in self.pool.sublet("report", "evictions")["steps"]:
            for quantile, name in (("0.5", "p50_us"), ("0.95", "p95_us"), ("0.99", "p99_us"),
                                   ("1.0", "most_us")):
                self.assertEqual(after["sublet_eviction_step_seconds", quantile, step["step"]],
                                 step[name] / 1e6)
        self.assertIn(("sublet_eviction_step_seconds", "0.5", "gone"), after)
        self.assertEqual(self.pool.run("metrics", "--json")[0], 2)

    def test_every_kind_of_job(self):
        self.assertEqual(self.history(), [])
        job = self.submit(self.pool)
        self.wait_progress(self.curly)
        steps = self.evict()
        steps.pop("demoted", None)  # if its handler was slow to run
        self.in_order(steps, ["told", "save_asked", "saved", "gone"])
        self.run_shell("")
        self.in_order(self.evict(), ["told", "demoted", "gone"])
        self.run_shell("trap '' TERM; ")
        self.in_order(self.evict(), ["told", "demoted", "gone"])
        self.run_shell("trap : TERM; ")  # is asked, and stays until its deadline
        steps = self.evict()
        self.in_order(steps, ["told", "save_asked", "demoted", "gone"])
        self.assertGreaterEqual(steps["gone"], 1_000_000)
        self.assertEqual(job, self.history()[-1]["job"])
        self.at_the_workstation(steps)
        self.in_reports(steps)
        # The workstation needs nobody to tell it.
        self.pool.stop_server()
        self.curly.stop()
        self.assertEqual(len(self.history()), 4)
        self.assertEqual(len(self.history("--last", "3")), 3)

    def at_the_workstation(self, last):
        notes = self.history()
        self.assertEqual([note["job"] for note in notes], [4, 3, 2, 1])
        for note in notes:
            self.assertEqual((note["ended"], note["sensed"]), ("owner came back", "script"))
        self.assertEqual({step: notes[0][step + "_us"] for step in last}, last)
        out = self.pool.run("owner", "history", "--state", self.curly.state)[1]
        self.assertRegex(out, r"^WHEN +ATTEMPT +SENSED +TOLD +DEMOTED +ASKED +SAVED +GONE\n"
                              r"20\S+Z +4\.1 +simulated owner +\d")

    def in_reports(self, last):
        report = json.loads(self.say("report", "evictions", "--json"))
        self.assertEqual([line["group"] for line in report["usage"]], [{"machine": "curly"}])
        self.assertEqual(report["usage"][0]["steps"], report["steps"])
        counts = {line["step"]: line["count"] for line in report["steps"]}
        self.assertIn(counts.pop("demoted"), (3, 4))
        self.assertEqual(counts, {"told": 4, "save_asked": 2, "saved": 1, "gone": 4})
        for line in report["steps"]:
            self.assertTrue(0 <= line["p50_us"] <= line["p95_us"] <= line["p99_us"] <=
                            line["most_us"], line)
        gone = [line for line in report["steps"] if line["step"] == "gone"][0]
        self.assertEqual((gone["p99_us"], gone["most_us"]), (last["gone"], last["gone"]))
        out = self.say("report", "evictions")
        self.assertRegex(out, r"^MACHINE +STEP +OF +P50 +P95 +P99 +MAX\ncurly +told +4 ")
        self.assertIn("\ncurly,gone,4,", self.say("report", "evictions", "--csv"))
        self.assertRegex(self.say("report", "evictions", "--by", "user"),
                         r"^USER +STEP")
        self.assertEqual(self.say("report", "evictions", "--until", "2000-01-01"),
                         "no job had to leave in that period\n")

    def test_a_client_that_was_restarted(self):
        """It finds the ends of its jobs, and notes each eviction once."""
        self.run_shell("")
        self.curly.kill()
        self.curly.owner("active")
        wait_for(lambda: not self.curly.running(), "the job to leave")
        self.curly.start()
        wait_for(self.history, "the eviction to be noted")
        self.curly.kill()
        self.curly.start()
        self.curly.owner("away")
        wait_for(lambda: self.curly.running() == "1.2", "the job to run again")
        self.assertEqual(len(self.history()), 1)

    def test_a_shepherd_that_cannot_tell(self):
        """The client and the monitor freeze and kill its job, and the client knows when."""
        self.run_shell("")
        record = self.curly.record(self.curly.running())
        os.kill(int(record["shepherd_pid"]), signal.SIGSTOP)
        steps = self.evict()
        note, = self.history()
        self.assertEqual((note["ended"], note["sensed"]), ("owner came back", "script"))
        self.assertEqual({step: note[step + "_us"] for step in steps}, steps)
        steps.pop("demoted", None)  # if the client came first
        self.in_order(steps, ["gone"])
        self.assertGreaterEqual(steps["gone"], 300_000)

    def test_the_place_where_the_owner_was_seen(self):
        self.curly.stop()
        root = os.path.join(self.pool.folder, "root")
        os.makedirs(os.path.join(root, "dev", "input"))
        os.symlink("/proc", os.path.join(root, "proc"))
        device = os.path.join(root, "dev", "input", "event5")
        os.mkfifo(device)
        sets = ["root=" + root, "idle_time=1 s", "cpu.become_idle=-1", "cpu.stay_idle=-1"]
        self.curly = self.pool.client("larry", scripted=False, monitor_sets=sets).start()
        self.run_shell("")
        with open(device, "wb") as pressed:
            pressed.write(bytes(24))
        wait_for(self.history, "the eviction to be noted")
        note, = self.history()
        self.assertEqual((note["sensed"], note["place"]), ("input", "event5"))
        out = self.pool.run("owner", "history", "--state", self.curly.state)[1]
        self.assertRegex(out, r"\n20\S+Z +1\.1 +input, event5 +\d")
        with open(os.path.join(self.curly.state, "evictions")) as f:
            self.assertRegex(f.read(), r"^sublet-evictions 1\n\d+ 1 1 \d+ 3 .* event5\n$")

    def test_notes_that_cannot_be_read(self):
        path = os.path.join(self.curly.state, "evictions")
        with open(path, "w") as f:
            f.write("of another kind\n")
        code, out, err = self.pool.run("owner", "history", "--state", self.curly.state)
        self.assertEqual((code, out), (3, ""), err)
        self.assertIn(path + " is of another version", err)
        self.run_shell("")
        self.evict()
        wait_for(lambda: self.pool.run("owner", "history", "--state", self.curly.state)[0] == 0,
                 "it to be replaced")
        self.assertEqual(len(self.history()), 1)


if __name__ == "__main__":
    unittest.main()
