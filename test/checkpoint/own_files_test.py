"""Programs that save their state in files of their own: what is whole of these is there again where
the job goes on, whether the program saves when it is asked, ends to be run again, or is killed."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

# Counts its attempts in `state`. Says in files of the folder `marks` what it does, and waits for
# others there.
WORKER = """#!/usr/bin/python3
import os, signal, sys, time

mode, marks = sys.argv[1:]


def say(what):
    open(os.path.join(marks, what + "." + os.environ["SUBLET_ATTEMPT"]), "w").close()


def wait_for(what):
    while not os.path.exists(os.path.join(marks, what)):
        time.sleep(0.02)


def save(number, name="state"):
    with open("new", "w") as f:
        f.write(str(number))
    os.rename("new", name)


step = int(open("state").read()) if os.path.exists("state") else 0


def save_and_leave(*_):
    save(step + 1)
    sys.exit(75)


if mode == "asked":
    signal.signal(signal.SIGTERM, save_and_leave)
elif mode == "by-usr1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, save_and_leave)
elif mode == "reraises":
    def die(*_):
        save(step + 1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, die)
elif mode == "links":
    save(step + 1)
    if not os.path.islink("link"):
        os.symlink("/etc/passwd", "link")
elif mode == "half":
    print("half" if os.path.exists("half") else "no half", flush=True)
    save(step + 1)
    torn = open("half", "w")
    torn.write("x" * 100000)
elif mode == "hangs":
    def save_and_hang(*_):
        save(step + 1)
        while True:
            signal.pause()

    signal.signal(signal.SIGTERM, save_and_hang)
    log = open("log", "a")
elif mode == "ends" and step < 6:
    save(step + 1)
    sys.exit(85)
elif mode == "idles":
    save(1)
    sys.exit(85)
elif mode == "copied":
    save(step + 1)
say("ready")
wait_for("go")
print(step, sorted(os.listdir(".")), os.environ["SUBLET_CHECKPOINT_FILES"].split())
"""


class OwnFiles(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.curly = self.pool.client("curly", extra=["--set", "checkpoint_interval=1 s"]).start()
        self.pool.wait_machines(1)
        self.marks = os.path.join(self.pool.folder, "marks")
        os.makedirs(self.marks)
        os.chmod(self.marks, 0o777)
        self.worker = os.path.join(self.pool.folder, "worker")
        with open(self.worker, "w") as f:
            f.write(WORKER)

    def submit(self, mode, *options, deadline="10 s"):
        # A handler in Python takes its time beside busy programs.
        return self.pool.submit("--save-deadline", deadline, *options, "--executable", self.worker,
                                "--", "./worker", mode, self.marks)[0]

    def said(self, what, attempt):
        return os.path.exists(os.path.join(self.marks, "%s.%d" % (what, attempt)))

    def wait_said(self, what, attempt):
        wait_for(lambda: self.said(what, attempt),
                 "attempt %d to be %s\n%s" % (attempt, what, self.pool.all_logs()))

    def evict(self, attempt):
        self.wait_said("ready", attempt)
        self.curly.owner("active")
        wait_for(lambda: not self.curly.attempts(), "the job to leave\n" + self.pool.all_logs())
        self.curly.owner("away")

    def finish(self, job):
        open(os.path.join(self.marks, "go"), "w").close()
        shown = self.pool.wait_state(job, ["done", "failed", "held"])
        self.assertEqual(shown["state"], "done", shown)
        return shown, self.pool.run("logs", job)[1].strip().splitlines()

    def test_it_saves_when_it_is_asked(self):
        job = self.submit("asked", "--checkpoint", "st?te")
        for attempt in (1, 2, 3):
            self.evict(attempt)
        self.wait_said("ready", 4)
        shown, said = self.finish(job)
        self.assertEqual(said, ["3 ['state', 'worker'] ['st?te']"], shown)
        self.assertEqual([one["ended"] for one in shown["attempt_list"]],
                         ["owner came back"] * 3 + ["done"])
        self.assertEqual([one["generation"] for one in shown["attempt_list"]][:3], [1, 2, 3])
        self.assertEqual((shown["evictions"], shown["description"]["checkpoint"]["files"]),
                         (3, ["st?te"]))

    def test_another_signal_asks_it(self):
        job = self.submit("by-usr1", "--checkpoint", "state", "--checkpoint-signal", "USR1")
        self.evict(1)
        self.wait_said("ready", 2)
        shown, said = self.finish(job)
        self.assertEqual(said, ["1 ['state', 'worker'] ['state']"], shown)
        self.assertIn("asked by SIGUSR1", self.pool.run("show", job)[1])

    def test_killed_it_keeps_what_is_whole(self):
        job = self.submit("half", "--checkpoint", "state", "--checkpoint", "half")
        self.evict(1)
        self.wait_said("ready", 2)
        shown, said = self.finish(job)
        self.assertEqual(said, ["no half", "1 ['half', 'state', 'worker'] ['state', 'half']"], shown)
        self.assertIn("'half' was being written, and not taken.",
                      shown["attempt_list"][0]["reason"])

    def test_killed_while_it_saves_it_keeps_what_it_had(self):
        """Its new state may belong to what it was still writing."""
        job = self.submit("hangs", "--checkpoint", "state", "--checkpoint", "log", deadline="1 s")
        self.evict(1)
        self.wait_said("ready", 2)
        shown, said = self.finish(job)
        self.assertEqual(said, ["0 ['log', 'worker'] ['state', 'log']"], shown)
        reason = shown["attempt_list"][0]["reason"]
        self.assertIn("'log' was being written, and not taken. Killed while it saved", reason)
        self.assertIn("none was taken.", reason)

    def test_it_ends_to_be_run_again(self):
        job = self.submit("ends", "--checkpoint", "state")
        self.wait_said("ready", 7)
        shown, said = self.finish(job)
        self.assertEqual(said, ["6 ['state', 'worker'] ['state']"], shown)
        self.assertEqual([one["ended"] for one in shown["attempt_list"]],
                         ["saved to go on"] * 6 + ["done"])
        self.assertEqual(shown["evictions"], 0)

    def test_told_to_leave_for_another_reason(self):
        """Without a handler it dies of the signal while it has a file open."""
        job = self.submit("half", "--checkpoint", "state", "--checkpoint", "ha*")
        self.wait_said("ready", 1)
        self.pool.sublet("hold", job)
        wait_for(lambda: not self.curly.attempts(), "the job to leave\n" + self.pool.all_logs())
        self.pool.sublet("release", job)
        self.wait_said("ready", 2)
        shown, said = self.finish(job)
        self.assertEqual(said, ["no half", "1 ['half', 'state', 'worker'] ['state', 'ha*']"], shown)
        self.assertEqual(shown["attempt_list"][0]["ended"], "held")
        self.assertIn("'half' was being written, and not taken.",
                      shown["attempt_list"][0]["reason"])

    def test_a_handler_may_end_it_by_the_signal(self):
        job = self.submit("reraises", "--checkpoint", "state")
        self.evict(1)
        self.wait_said("ready", 2)
        shown, said = self.finish(job)
        self.assertEqual(said, ["1 ['state', 'worker'] ['state']"], shown)

    def test_what_was_not_taken_is_told(self):
        job = self.submit("links", "--checkpoint", "state", "--checkpoint", "link")
        self.evict(1)
        self.wait_said("ready", 2)
        shown, said = self.finish(job)
        self.assertIn("A checkpoint file was not taken: 'link' leads through a symbolic link",
                      shown["attempt_list"][0]["reason"])

    def test_without_progress_it_is_held(self):
        job = self.submit("idles", "--checkpoint", "state")
        shown = self.pool.wait_state(job, ["held", "done", "failed"])
        self.assertEqual(shown["state"], "held", shown)
        # The first of them saved something new.
        self.assertEqual(shown["attempts"], 6)
        self.assertTrue(shown["reason"].startswith(
            "held: 5 attempts in a row ended to be run again, and saved nothing; "), shown["reason"])

    def test_another_exit_status_says_it(self):
        job = self.pool.submit("--checkpoint", "state", "--checkpoint-exit", "3", "--", "sh", "-c",
                               "test -e state && exit 0; echo 1 > state; exit 3")[0]
        shown = self.pool.wait_state(job, ["done", "failed", "held"])
        self.assertEqual([one["ended"] for one in shown["attempt_list"]],
                         ["saved to go on", "done"], shown)
        job = self.pool.submit("--checkpoint", "state", "--checkpoint-exit", "3", "--", "sh", "-c",
                               "echo 1 > state; exit 85")[0]
        self.assertEqual(self.pool.wait_state(job, ["done", "failed", "held"])["state"], "failed")

    def check_a_copy(self, *options):
        job = self.submit("copied", "--checkpoint", "state", *options)
        self.wait_said("ready", 1)
        wait_for(lambda: self.pool.job(job)["attempt_list"][0]["generation"] == 1,
                 "a copy to reach the server\n" + self.pool.all_logs(), 60 + harness.PATIENCE)
        self.pool.kill_shepherds()
        self.wait_said("ready", 2)
        shown, said = self.finish(job)
        self.assertEqual(said, ["1 ['state', 'worker'] ['state']"], shown)
        self.assertEqual(shown["attempt_list"][0]["ended"], "machine lost")

    def test_a_copy_survives_the_machine(self):
        self.check_a_copy("--checkpoint-every", "1 s")

    def test_the_machine_chooses_when_to_copy(self):
        self.check_a_copy()  # after 30 s

    def test_the_client_begins_anew_meanwhile(self):
        job = self.submit("asked", "--checkpoint", "state")
        self.evict(1)
        self.wait_said("ready", 2)
        self.curly.kill()
        self.curly.start()
        wait_for(lambda: self.pool.machines()[0]["state"] == "busy", "the client to be back")
        self.evict(2)
        self.wait_said("ready", 3)
        shown, said = self.finish(job)
        self.assertEqual(said, ["2 ['state', 'worker'] ['state']"], shown)


if __name__ == "__main__":
    unittest.main()
