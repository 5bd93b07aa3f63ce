"""The owner's word: `sublet owner pause`, `resume` and `status`, without a server and without
root. Jobs may not speak for the owner."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

LIMIT = 2.0  # as in the owner's matrix
NOBODY, OTHER = 65534, 65533
FRAME = struct.Struct("=IHHQIIIIq4q")
MAGIC, OWNER, STATUS, PAUSE, RESUME, AGENT, X11 = 0x314C4253, 48, 1, 2, 3, 64, 1
BURNER = "trap '' TERM; while :; do :; done"


def frame(word, length=0, kind=OWNER):
    return FRAME.pack(MAGIC, kind, 0, 0, 0, 0, word, 0, 0, length, 0, 0, 0)


class OwnersWord(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.curly = self.pool.client("curly").start()
        self.pool.wait_machines(1)
        # What a job or another account can execute: the checkout may be closed to them.
        self.sublet = self.pool.public(os.path.join(harness.BIN, "sublet"))

    def say(self, *words, uid=None):
        """As an ordinary user where this test is root. Returns status, stdout, stderr."""
        command = [self.sublet, "owner", *words, "--state", self.curly.state]
        if os.geteuid() == 0 and uid != 0:
            command = ["setpriv", "--reuid=%d" % (uid or NOBODY), "--clear-groups"] + command
        # The server is not needed.
        env = dict(self.pool.environment(), SUBLET_SERVER="/nowhere")
        done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              env=env, cwd="/", timeout=harness.PATIENCE)
        return done.returncode, done.stdout, done.stderr

    def status(self):
        code, out, err = self.say("status", "--json")
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)

    def burning(self):
        job = self.pool.submit("--", "sh", "-c", BURNER)[0]
        self.pool.wait_state(job, "running")
        attempt = wait_for(self.curly.running, "an attempt")
        return job, int(self.curly.record(attempt)["job_pid"])

    def test_not_now(self):
        job, pid = self.burning()
        with harness.Pace() as pace:
            code, out, err = self.say("pause")
            wait_for(lambda: not harness.alive(pid), "the job to be gone")
        self.assertLess(pace.took, pace.limit(LIMIT + 0.5))  # the save deadline of 2 s passes
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^paused by \S+ until `sublet owner resume --state \S+`: no jobs\n")
        wait_for(lambda: not self.curly.attempts(), "the attempt to be forgotten")
        details = self.pool.job(job)
        self.assertEqual(details["attempt_list"][0]["ended"], "owner came back")
        self.assertEqual(details["evictions"], 1)
        machine, = self.pool.machines()
        self.assertTrue(machine["owner_paused"])

        # It outlives monitor and client; both see an owner who is away.
        self.assertTrue(os.path.exists(self.curly.state + "/pause"))
        monitor, = self.curly.monitor_pids()
        harness.kill(monitor)
        wait_for(lambda: [p for p in self.curly.monitor_pids() if p != monitor],
                 "another monitor")
        self.curly.stop()
        self.curly.start()
        wait_for(lambda: self.pool.machines()[0]["owner_paused"], "the machine to say so again")
        self.assertTrue(self.status()["paused"])
        self.assertEqual(len(self.pool.attempts(job)), 1)

        code, out, err = self.say("resume")
        self.assertEqual((code, err), (0, ""))
        self.assertFalse(os.path.exists(self.curly.state + "/pause"))
        self.pool.wait_state(job, "running")
        _, second = self.pool.attempts(job)
        wait_for(lambda: [(a["job"], a["attempt"]) for a in self.status()["attempts"]] ==
                 [(job, second["number"])],
                 "the status to name the attempt")
        if "killed one by one" not in self.pool.log("client-curly"):
            wait_for(lambda: self.status()["attempts"][0]["processes"] >= 1, "what it uses")
            self.assertIn("PROCS", self.say("status")[1])

    def test_what_the_senses_see(self):
        def said():
            return {seen["sense"]: (seen["keeps_jobs_away"], seen["value"])
                    for seen in self.status()["senses"]}
        self.assertEqual(said(), {"owner's word": (False, "no pause"),
                                  "simulated owner": (False, "away")})
        self.curly.owner("active")
        wait_for(lambda: said()["simulated owner"] == (True, "here"), "the owner to be seen")
        code, out, _ = self.say("status")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^SENSE +SAYS +SEES$")
        self.assertRegex(out, r"(?m)^owner's word +- +no pause$")
        self.assertRegex(out, r"(?m)^simulated owner +no jobs +here$")
        self.curly.owner("0.5")  # a use of the CPU that keeps jobs away without more
        wait_for(lambda: said()["cpu"] == (True, "0.50 cores"), "the CPU")
        self.assertEqual(said()["input"], (False, "none was seen"))
        self.assertEqual(self.say("pause")[0], 0)
        self.assertEqual(said()["owner's word"], (True, "paused"))
        # What changes something is answered without them.
        code, out, _ = self.say("resume", "--json")
        self.assertEqual((code, json.loads(out)["senses"]), (0, []))

    def rules(self, *words, uid=None):
        code, out, err = self.say("rules", "--json", *words, uid=uid)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)["rules"]

    @unittest.skipUnless(os.geteuid() == 0, "needs several accounts")
    def test_rules(self):
        self.assertEqual(self.rules(), [])
        code, out, _ = self.say("rules")
        self.assertEqual((code, out), (0, "no rules: jobs may run whenever the senses see nobody\n"))
        # Others may look, but not change anything.
        code, out, err = self.say("rules", "--evict-when", "day in workdays", uid=OTHER)
        self.assertEqual((code, out), (5, ""), err)
        self.assertIn("only root, the account of the client and the accounts of", err)
        for rule, complaint in (("on_batery", "evict_when: column 1: unknown name 'on_batery'; did you "
                                              "mean 'on_battery'?"),
                                ("1 < 2", "evict_when: it is always true, so no job could"),
                                ("cpu < '", "evict_when: column 7: this text has no closing quote"),
                                ("cpu <\n1", "a rule is one line"),
                                ("x" * 5000, "a rule has at most 4096 bytes")):
            code, out, err = self.say("rules", "--evict-when", rule, uid=0)
            self.assertEqual((code, out), (3, ""), err)
            self.assertIn(complaint, err)
        self.assertEqual(self.rules(), [])
        # A job leaves at once, and the machine says why.
        job, pid = self.burning()
        code, out, err = self.say("rules", "--evict-when", "hour >= 0", uid=0)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"(?m)^owner +always +hour >= 0$")
        wait_for(lambda: not harness.alive(pid), "the job to be gone")
        self.assertEqual(self.status()["reason"], "rule")
        rule = [seen for seen in self.status()["senses"] if seen["sense"] == "rule"]
        self.assertRegex(rule[0]["value"], r"^evict_when: hour >= 0 \(hour is \d+\)$")
        # It outlives the monitor.
        monitor, = self.curly.monitor_pids()
        harness.kill(monitor)
        wait_for(lambda: [p for p in self.curly.monitor_pids() if p != monitor], "another monitor")
        wait_for(lambda: self.say("status")[0] == 0, "it to answer")
        self.assertEqual(self.rules(), [{"by_administrator": False, "user": "", "anywhere": False,
                                         "idle_when": "",
                                         "evict_when": "hour >= 0"}])
        # Rules for somebody who is not here do not count.
        self.assertEqual(len(self.rules("--user", "zoe", "--idle-when", "hour < 0", uid=0)), 2)
        self.assertEqual(len(self.rules("--remove", uid=0)), 1)
        self.pool.wait_state(job, "running")
        self.assertEqual(self.rules("--user", "zoe", "--remove", uid=0), [])
        wait_for(lambda: not os.path.exists(self.curly.state + "/rules"), "them to be forgotten")

    @unittest.skipUnless(os.geteuid() == 0, "damages a file of the monitor")
    def test_rules_that_cannot_be_read(self):
        self.rules("--idle-when", "hour >= 0", uid=0)
        monitor, = self.curly.monitor_pids()
        with open(self.curly.state + "/rules", "w") as f:
            f.write("sublet-rules 1\n\thour")
        harness.kill(monitor)
        wait_for(lambda: [p for p in self.curly.monitor_pids() if p != monitor], "another monitor")
        wait_for(lambda: self.say("status")[0] == 0 and self.status()["reason"] == "rule",
                 "it to keep jobs away")
        self.rules("--remove", uid=0)
        wait_for(lambda: self.status()["jobs_may_run"], "it to judge again")

    def test_for_some_time(self):
        job, _ = self.burning()
        code, out, _ = self.say("pause", "2s")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^paused by \S+ for another (2|1) s: no jobs\n")
        self.assertTrue(self.status()["paused"])
        wait_for(lambda: not self.status()["paused"], "the pause to be over")
        self.pool.wait_state(job, "running")
        wait_for(lambda: not os.path.exists(self.curly.state + "/pause"), "it to be forgotten")

    @unittest.skipUnless(os.geteuid() == 0, "needs two accounts")
    def test_a_pause_of_another_account(self):
        """Two people share the machine: who pauses it is not overruled by the other."""
        self.assertEqual(self.say("pause", "1h")[0], 0)
        for words in (["resume"], ["pause", "1min"]):
            code, out, err = self.say(*words, uid=OTHER)
            self.assertEqual((code, out), (5, ""), err)
            self.assertIn("paused by nobody, and only nobody or root may end or shorten", err)
        self.assertEqual(self.status()["paused_by"], "nobody")
        # Who makes it longer does not make it his own, and so cannot end it.
        self.assertEqual(self.say("pause", "2h", uid=OTHER)[0], 0)
        self.assertEqual(self.status()["paused_by"], "nobody")
        self.assertEqual(self.say("resume", uid=OTHER)[0], 5)
        self.assertEqual(self.say("pause", uid=OTHER)[0], 0)
        self.assertEqual(self.say("resume", uid=OTHER)[0], 5)
        self.assertEqual(self.say("resume")[0], 0)
        self.assertFalse(self.status()["paused"])

    def test_the_owner_who_is_there_stays(self):
        self.curly.owner("active")
        wait_for(lambda: not self.status()["jobs_may_run"], "the owner to be seen")
        self.say("pause")
        code, out, _ = self.say("resume")
        self.assertEqual(code, 0)
        self.assertIn("no jobs now", out)

    def test_how_long_the_owner_must_be_away(self):
        self.curly.owner("3.0")  # as measured, in cores
        wait_for(lambda: self.status()["reason"] == "cpu", "the owner's programs to be seen")
        self.assertEqual(self.status()["idle_in_ms"], 15 * 60_000)
        code, out, _ = self.say("status")
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("no jobs now: you are here: the CPU is in use; jobs may run "
                                       "after 15 min of quiet\nno job is here\n"), out)
        self.curly.owner("0.0")
        wait_for(lambda: self.status()["reason"] == "settling", "the owner's programs to end")
        self.assertRegex(self.say("status")[1],
                         r"^no jobs now: not until it has been quiet for another 1[45] min")
        self.curly.owner("active")  # a simulated owner has no such time
        wait_for(lambda: self.status()["reason"] == "script", "the owner")
        self.assertNotIn("jobs may run", self.say("status")[1])
        self.assertEqual(self.status()["idle_in_ms"], -1)

    def test_a_job_may_not(self):
        self.say("pause", "1s")
        words = [self.sublet, "owner", "--state", self.curly.state]
        script = "; ".join("%s owner %s --state %s; echo $?" % (self.sublet, word,
                                                               self.curly.state)
                           for word in ("pause", "resume"))
        # What it leaves behind may not, either.
        script += "; (sh -c '%s; echo $?; : > said' &)" % " ".join(words[:2] + ["pause"] +
                                                                   words[2:])
        script += "; while [ ! -e said ]; do sleep 0.02; done"
        job = self.pool.submit("--", "sh", "-c", script)[0]
        self.pool.wait_state(job, "done")
        said = self.pool.run("logs", job)
        self.assertEqual(said[1], "5\n5\n5\n", said)
        self.assertIn("a job may not speak for the owner of the machine", said[2] + said[1] +
                      self.pool.run("logs", job, "--stderr")[1])
        self.assertFalse(self.status()["paused"])

    def test_a_job_is_no_agent_of_a_desktop(self):
        path = self.curly.state + "/agent.sock"
        script = ("use Socket; socket(S, AF_UNIX, SOCK_SEQPACKET, 0) or die;"
                  "connect(S, sockaddr_un($ARGV[0])) or die $!;"
                  "send(S, pack('H*', $ARGV[1]), 0) or die $!;"
                  "print defined(recv(S, $_, 100, 0)) && length ? 'heard' : 'refused', qq(\n)")
        hello = frame(X11, kind=AGENT)
        job = self.pool.submit("--", "perl", "-e", script, path, hello.hex())[0]
        self.pool.wait_state(job, "done")
        self.assertEqual("refused\n", self.pool.run("logs", job)[1])
        # Anybody else is pinged.
        said = subprocess.run(["perl", "-e", script, path, hello.hex()], text=True,
                              capture_output=True, timeout=harness.PATIENCE, check=True)
        self.assertEqual("heard\n", said.stdout)

    def connect(self):
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(peer.close)
        peer.settimeout(harness.PATIENCE)
        peer.connect(self.curly.state + "/owner.sock")
        return peer

    def test_hostile_peers(self):
        """They are few at a time, and the owner's return is seen beside them."""
        job, pid = self.burning()
        wrong = [b"", b"x", frame(PAUSE)[:-1], frame(PAUSE) + b"x", frame(0), frame(9),
                 frame(PAUSE, -1), frame(PAUSE, 1 << 62), frame(PAUSE, kind=1), b"\0" * 72]
        for data in wrong:
            peer = self.connect()
            peer.send(data)
            self.assertEqual(peer.recv(100), b"", data)
        self.assertFalse(self.status()["paused"])
        child = subprocess.Popen(
            [sys.executable, "-c",
             "import os, socket, sys\n"
             "if os.geteuid() == 0: os.setresuid(65534, 65534, 65534)\n"
             "held = []\n"
             "for n in range(1000):\n"
             "  one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
             "  one.setblocking(False)\n"
             "  try: one.connect(sys.argv[1])\n"
             "  except OSError: pass\n"
             "  held.append(one)\n"
             "print(flush=True); sys.stdin.read()", self.curly.state + "/owner.sock"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        child.stdout.readline()
        monitor, = self.curly.monitor_pids()
        self.assertLess(len(os.listdir("/proc/%d/fd" % monitor)), 150)
        if os.geteuid() == 0:  # another account is heard
            self.assertEqual(self.say("status", uid=0)[0], 0)
        self.curly.owner("active")
        wait_for(lambda: not harness.alive(pid), "the job to be gone")
        child.stdin.close()

    def test_withdrawn_and_lent(self):
        job, pid = self.burning()
        code, out, _ = self.say("reclaim")
        self.assertEqual((code, out.split("\n")[0]),
                         (0, "withdrawn until `sublet owner lend --state %s`: no jobs"
                          % self.curly.state))
        wait_for(lambda: not harness.alive(pid), "the job to be gone")
        status = self.status()
        self.assertEqual((status["withdrawn"], status["lent_s"], status["paused"],
                          status["reason"]), (True, 0, False, "paused"))
        # It outlives the monitor; a pause beside it is another matter.
        monitor, = self.curly.monitor_pids()
        harness.kill(monitor)
        wait_for(lambda: [p for p in self.curly.monitor_pids() if p != monitor], "another monitor")
        wait_for(lambda: self.say("status")[0] == 0, "it to answer")
        out = self.say("pause")[1]
        self.assertRegex(out, r"(?s)^paused by .*\nwithdrawn until `sublet owner lend")
        self.assertEqual(self.say("resume")[0], 0)
        self.assertTrue(self.status()["withdrawn"])
        if os.geteuid() == 0:
            for words in ["lend"], ["until", "2h"]:
                code, out, err = self.say(*words)
                self.assertEqual((code, out), (5, ""), err)
                self.assertIn("may lend this machine", err)
        code, out, _ = self.say("until", "2s", uid=os.geteuid())
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^lent for another (2|1) s, and withdrawn then$")
        self.assertFalse(self.status()["withdrawn"])
        wait_for(lambda: self.status()["withdrawn"], "the time to be over")
        self.assertTrue(os.path.exists(self.curly.state + "/lending"))
        code, out, _ = self.say("lend", uid=os.geteuid())
        self.assertEqual((code, self.status()["lent_s"]), (0, -1))
        self.assertFalse(os.path.exists(self.curly.state + "/lending"))
        self.pool.wait_state(job, "running")
        for wrong in "", "24:00", "12:60", "18:0x", "-1:00", "400d", "18:00 ", "noon":
            code, out, err = self.say("until", wrong, uid=os.geteuid())
            self.assertEqual((code, out), (2, ""), (wrong, err))
        self.assertEqual(self.status()["lent_s"], -1)
        code, out, _ = self.say("until", "23:59", uid=os.geteuid())
        self.assertRegex(out, r"(?m)^lent for another .*, and withdrawn then$")
        self.assertLessEqual(self.status()["lent_s"], 25 * 3600)

    def test_a_flood(self):
        """Who asks without end is answered 50 times a second, and others beside him."""
        job, pid = self.burning()
        flood = subprocess.Popen(
            [sys.executable, "-c",
             "import os, socket, sys, time\n"
             "if os.geteuid() == 0: os.setresuid(65534, 65534, 65534)\n"
             "word, answers, begun = bytes.fromhex(sys.argv[2]), 0, time.monotonic()\n"
             "while not os.path.exists(sys.argv[3]):\n"
             "  try:\n"
             "    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
             "    one.connect(sys.argv[1])\n"
             "    one.send(word)\n"
             "    answers += len(one.recv(100)) > 0\n"
             "    if answers == 100: print(flush=True)\n"
             "  except OSError: pass\n"
             "print(answers, time.monotonic() - begun)", self.curly.state + "/owner.sock",
             frame(STATUS).hex(), self.pool.folder + "/enough"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(flood.stdout.close)
        self.addCleanup(flood.wait)
        self.addCleanup(flood.kill)
        flood.stdout.readline()
        self.assertEqual(self.say("pause", "1h", uid=0)[0], 0)
        wait_for(lambda: not harness.alive(pid), "the job to be gone")
        self.assertEqual(self.say("resume", uid=0)[0], 0)
        with open(self.pool.folder + "/enough", "w"):
            pass
        answers, seconds = flood.stdout.read().split()
        self.assertGreaterEqual(int(answers), 100)
        # Besides, two are read with each sample: at most eight a second.
        self.assertLessEqual(int(answers), 21 + 60 * (float(seconds) + 1))

    def test_what_is_stored_may_be_damaged(self):
        self.curly.stop()
        for pid in self.curly.monitor_pids():
            harness.kill(pid, signal.SIGTERM)
        wait_for(lambda: not self.curly.monitor_pids(), "the monitor to end")
        for name in "pause", "lending":
            with open(self.curly.state + "/" + name, "w") as f:
                f.write("nonsense\n")
        self.curly.start()
        wait_for(lambda: self.pool.machines()[0]["owner_paused"], "the machine to be paused")
        self.assertEqual(self.say("resume")[0], 0)
        self.assertFalse(self.status()["paused"])
        self.assertTrue(self.status()["withdrawn"])
        self.assertEqual(self.say("lend", uid=os.geteuid())[0], 0)
        self.assertTrue(self.status()["jobs_may_run"])

    def test_what_cannot_be_stored_holds_nevertheless(self):
        os.mkdir(self.curly.state + "/pause")  # no file can take its place
        code, out, err = self.say("pause")
        self.assertEqual(code, 0)
        self.assertIn("paused by", out)
        self.assertIn("this could not be stored, so that a restart forgets it: ", err)
        self.assertTrue(self.status()["paused"])
        os.rmdir(self.curly.state + "/pause")

    def test_without_a_monitor(self):
        code, out, err = self.say("status", "--state", "/nowhere")
        self.assertEqual((code, out), (2, ""), err)  # --state twice
        done = subprocess.run([self.sublet, "owner", "status", "--state", "/nowhere"], text=True,
                              capture_output=True, timeout=harness.PATIENCE)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (
            8, "", "sublet: no load monitor answers in /nowhere (No such file or directory); start "
            "sublet-client; if it has another state folder, name that with --state\n"))

    def test_a_socket_that_a_client_left(self):
        """A client of the user's own that has ended hides no other one."""
        own = os.path.join(self.pool.folder, "state", "sublet-client")
        os.makedirs(own)
        left = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        left.bind(os.path.join(own, "owner.sock"))
        left.close()
        done = subprocess.run([self.sublet, "owner", "status"], text=True, capture_output=True,
                              timeout=harness.PATIENCE,
                              env=dict(os.environ, XDG_STATE_HOME=os.path.dirname(own)))
        # A client of the machine may really run here.
        if done.returncode != 0:
            self.assertIn("no load monitor answers in %s or /var/lib/sublet-client (Connection "
                          "refused; " % own, done.stderr)


if __name__ == "__main__":
    unittest.main()
