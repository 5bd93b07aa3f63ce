"""`sublet rehearse` finds planted faults, each a mistake that a program's author could have made,
and passes the same programs without them."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

SUBLET = os.path.join(harness.BIN, "sublet")
FAULTS = os.path.join(harness.ROOT, "test", "rehearse", "faults")
PYTHON = ["--env", "PYTHONPATH=" + os.path.join(harness.ROOT, "python"),
          "--env", "PYTHONDONTWRITEBYTECODE=1", "--env", "PATH"]


def run(*words):
    """The exit status of a rehearsal, and its report as data."""
    done = subprocess.run([SUBLET, "--json", "rehearse", *words], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=harness.PATIENCE)
    if done.returncode not in (0, 1) or done.stderr:
        raise AssertionError("exit status %d\n%s%s" % (done.returncode, done.stdout, done.stderr))
    return done.returncode, json.loads(done.stdout)


def script(name, fault, *options):
    path = os.path.join(FAULTS, name)
    return run(*PYTHON, "--input", path, *options, "--", "python3", name, fault)


class Faults(unittest.TestCase):
    def rehearsed(self, outcome, status):
        self.assertEqual(outcome[0], status, outcome[1])
        return outcome[1]

    def assert_differs(self, report, *expected):
        """Each of these is in a difference of a run."""
        self.assertEqual(report["verdict"], "differs")
        self.assertEqual(report["undisturbed"]["differences"], [])
        found = [text for run in report["runs"] for text in run["differences"]]
        for text in expected:
            self.assertTrue(any(text in one for one in found), (text, found))

    def assert_part(self, report, section):
        """At the first point after the interruption this section differs."""
        parting = report["parting"]
        self.assertIn("~ %s: " % section, parting["what"])
        self.assertEqual(parting["other"], parting["interrupted_at"] + 1)
        self.assertIn(parting["same"], (0, parting["interrupted_at"]))


class InPython(Faults):
    def rehearse(self, fault, status=1, runs="2"):
        return self.rehearsed(script("sums.py", fault, "--output", "result", "--runs", runs),
                              status)

    def test_corrected(self):
        report = self.rehearse("none", status=0)
        self.assertEqual(report["verdict"], "passed")
        self.assertEqual(report["undisturbed"]["points"], 12)
        self.assertEqual([run["interrupted"] for run in report["runs"]],
                         ["at an instant", "twice"])
        self.assertEqual((report["runs"][1]["times"], report["runs"][1]["saves"]), (2, 2))

    def test_variable_forgotten(self):
        report = self.rehearse("variable-forgotten")
        self.assert_differs(report, "result differs at byte 6, line 1: \"total ")
        self.assertEqual((report["parting"]["same"], report["parting"]["other"]), (12, 0))

    def test_forgotten_variable_that_is_used(self):
        report = self.rehearse("forgotten-and-used")
        self.assert_differs(report, "result differs at byte ")
        self.assert_part(report, "total")

    def test_generator_lost(self):
        report = self.rehearse("generator-lost")
        self.assert_differs(report, "result differs at byte ")
        self.assert_part(report, "total")

    # Every other point is between them.
    def test_saved_between_two_halves_of_a_step(self):
        report = self.rehearse("half-a-step", runs="4")
        self.assert_differs(report, "result differs at byte ")

    def test_state_in_the_working_folder(self):
        report = self.rehearse("state-in-a-file")
        self.assert_differs(report, "result differs at byte ")
        self.assertEqual(report["parting"]["other"], 0)

    def test_wall_clock(self):
        report = self.rehearse("wall-clock")
        self.assertEqual((report["verdict"], report["runs"]), ("not-deterministic", []))
        self.assertIn("result differs at byte ", report["undisturbed"]["differences"][0])
        self.assertIn("--compare", report["says"])

    def test_the_users_own_comparison(self):
        """It gets both folders; here the wall clock may differ, but not the other line."""
        status, report = script("sums.py", "wall-clock", "--output", "result", "--runs", "2",
                                "--compare", "f() { grep -h largest \"$1/result\" \"$2/result\" | "
                                "uniq | wc -l | grep -qx 1; }; f")
        self.assertEqual((status, report["verdict"]), (0, "passed"))


class InC(Faults):
    def test_interrupted_it_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            rehearsal = subprocess.Popen([SUBLET, "rehearse", "--", "/bin/sh", "-c", "sleep 1000"],
                                         env=dict(os.environ, TMPDIR=folder),
                                         stdin=subprocess.DEVNULL)

            def programs():
                return set(harness.processes_naming(folder, ["environ"])) - {rehearsal.pid}
            try:
                harness.wait_for(programs, "the program to run")
                rehearsal.send_signal(signal.SIGINT)
                self.assertEqual(rehearsal.wait(harness.PATIENCE), 130)
            finally:
                rehearsal.kill()
                rehearsal.wait()
            self.assertEqual(programs(), set())
            self.assertEqual(os.listdir(folder), [])

    def rehearse(self, fault, status=1):
        return self.rehearsed(run("--runs", "8", "--", os.path.join(harness.UNIT, "steps"), fault),
                              status)

    def test_corrected(self):
        report = self.rehearse("none", status=0)
        self.assertEqual((report["verdict"], report["undisturbed"]["points"]), ("passed", 40))
        self.assertEqual([run["interrupted"] for run in report["runs"]],
                         ["at an instant", "twice", "killed during a save",
                          "from the older generation", "again after a resume", "at the start",
                          "three times", "at an instant"])
        self.assertGreaterEqual(report["runs"][3]["saves"], 2)

    def test_a_save_is_cut_off(self):
        """A save takes less than a millisecond: a rehearsal may miss it."""
        for seed in range(1, 21):
            status, report = run("--runs", "3", "--seed", str(seed), "--",
                                 os.path.join(harness.UNIT, "steps"), "none")
            self.assertEqual((status, report["verdict"]), (0, "passed"))
            if report["runs"][2]["cut_saves"] == 1:
                break
        self.assertEqual(report["runs"][2]["cut_saves"], 1)

    def test_only_the_first_element_is_saved(self):
        report = self.rehearse("first-element")
        self.assert_differs(report, "stdout differs at byte ")
        self.assertEqual(report["parting"]["other"], 0)

    def test_a_step_is_skipped(self):
        report = self.rehearse("step-skipped")
        self.assert_differs(report, "stdout differs at byte ")
        self.assert_part(report, "cells")

    def test_prints_as_it_goes(self):
        report = self.rehearse("prints-as-it-goes")
        self.assert_differs(report, "stdout differs at byte 0, line 1: ")

    def test_another_exit_status(self):
        report = self.rehearse("exit-status")
        self.assert_differs(report, "exit status 3 instead of exit status 0")


class WithFilesOfItsOwn(Faults):
    """These can be interrupted only at instants, of which each may come too early to matter."""

    def rehearse(self, fault, *options, verdict, files=("state", "log")):
        for file in files:
            options += ("--checkpoint", file)
        for seed in range(1, 21):
            status, report = script("own_files.py", fault, "--output", "log", "--runs", "3",
                                    "--seed", str(seed), *options)
            self.assertEqual(status, 0 if report["verdict"] == "passed" else 1)
            if report["verdict"] == verdict:
                break
            self.assertIn(report["verdict"], ("passed", "never-saved", "never-interrupted"))
        return report

    def test_corrected(self):
        self.assertEqual(self.rehearse("none", verdict="passed")["verdict"], "passed")

    def test_killed_between_its_save_and_its_end(self):
        """Its log is open then: with that of an older generation its new state makes no sense."""
        for seed in range(1, 21):
            status, report = script("own_files.py", "slow-to-end", "--output", "log", "--runs", "3",
                                    "--seed", str(seed), "--checkpoint", "state",
                                    "--checkpoint", "log")
            self.assertIn(report["verdict"], ("passed", "never-saved", "never-interrupted"), report)
            cut = report["runs"][2]
            if cut["saves"] > 0 and cut["cut_saves"] > 0:
                break
        self.assertGreater(cut["saves"], 0, report)
        self.assertGreater(cut["cut_saves"], 0, report)

    def test_appended_twice(self):
        report = self.rehearse("appended-twice", verdict="differs")
        self.assert_differs(report, "log differs at byte ")

    def test_half_a_file(self):
        report = self.rehearse("half-a-file", "--save-deadline", "0.1", verdict="differs")
        self.assert_differs(report, "log differs at byte 0, line 1: ")

    def test_not_understood_and_begun_anew(self):
        report = self.rehearse("not-understood", verdict="differs")
        self.assert_differs(report, "log differs at byte ")

    def test_left_unsaved(self):
        report = self.rehearse("left-unsaved", verdict="never-saved", files=["state"])
        self.assertEqual(report["verdict"], "never-saved")
        self.assertIn("every interruption starts it anew", report["says"])


if __name__ == "__main__":
    unittest.main()
