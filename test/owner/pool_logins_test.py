"""Owners' rules that count while a user is logged in anywhere in the pool: what is known of the
pool keeps jobs from coming, and drives none away."""

import errno
import json
import os
import socket
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

# struct utmpx: the kind of entry, and the user's name.
UTMP = struct.Struct("=h2xi32s4s32s256s2hi2i4i20s")
USER_PROCESS = 7


class PoolLogins(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        # Logins are known when the time of a lease and a renewal has passed.
        self.pool.start_server(sets=["scheduling.lease=12 s"])
        self.root = os.path.join(self.pool.folder, "root")
        os.makedirs(self.root + "/run")
        os.makedirs(self.root + "/dev")
        for folder in ("proc", "sys"):
            os.symlink("/" + folder, os.path.join(self.root, folder))

    def start(self, *machines, takes_part=True):
        sets = ["--set", "pool_logins=true"] if takes_part else []
        for name in machines:
            setattr(self, name, self.pool.client(
                name, extra=sets,
                monitor_sets=["root=" + self.root] if name == "moe" else ()).start())
        self.pool.wait_machines(len(machines))

    def log_in(self, *users):
        """On moe, whose monitor reads this file."""
        with open(self.root + "/run/utmp.new", "wb") as f:
            for user in users:
                f.write(UTMP.pack(USER_PROCESS, os.getpid(), b"pts/1", b"1", user.encode(), b"",
                                  0, 0, 0, 0, 0, 0, 0, 0, 0, b""))
        os.rename(f.name, self.root + "/run/utmp")

    def say(self, *words):
        code, out, err = self.pool.run("owner", *words, "--state", self.curly.state)
        self.assertEqual((code, err), (0, ""))
        return out

    def rule_for(self, user, *words):
        return self.say("rules", "--user", user, "--anywhere", *words)

    def rule_says(self):
        """What keeps jobs away from curly by a rule; ""."""
        seen = [one["value"] for one in json.loads(self.say("status", "--json"))["senses"]
                if one["sense"] == "rule"]
        return " ".join(seen)

    def owner_was_here(self):
        self.curly.owner("active")
        wait_for(lambda: self.machine()["state"] == "busy", "the owner")
        self.curly.owner("away")

    def machine(self):
        return next(m for m in self.pool.machines() if m["name"] == "curly")

    def test_while_she_is_logged_in(self):
        self.log_in("anna")
        self.start("curly", "moe")
        self.rule_for("anna", "--idle-when", "hour < 0")
        self.assertEqual(json.loads(self.say("rules", "--json"))["rules"],
                         [{"by_administrator": False, "user": "anna", "anywhere": True,
                           "idle_when": "hour < 0", "evict_when": ""}])
        self.assertIn("anna is logged in", self.say("rules"))
        # At first it is not known, which speaks against jobs.
        self.assertIn("for anna anywhere", self.rule_says())
        wait_for(lambda: "not known" not in self.rule_says(), "the server's word of anna")
        self.assertIn("for anna anywhere", self.rule_says())
        self.owner_was_here()
        wait_for(lambda: json.loads(self.say("status", "--json"))["reason"] == "rule", "the rule")
        self.log_in("ben")
        wait_for(lambda: self.machine()["state"] == "idle", "curly to be lent")
        # She comes back: nobody has to leave for what happens on another machine.
        job, other = self.pool.submit("--count", 2, "--", "sh", "-c",
                                      "until [ -e %s/end ]; do sleep 0.1; done" %
                                      self.pool.folder)
        for one in (job, other):
            self.pool.wait_state(one, "running")
        self.log_in("anna", "ben")
        wait_for(lambda: not json.loads(self.say("status", "--json"))["jobs_may_run"],
                 "the server's word of anna")
        third = self.pool.submit("--", "true")[0]
        # It would have left by now, and the word has reached the server.
        for one in (job, other):
            shown = self.pool.job(one)["attempt_list"]
            self.assertEqual([a["state"] for a in shown], ["running"], shown)
        with open(self.pool.folder + "/end", "w"):
            pass
        for one in (job, other):
            self.pool.wait_state(one, "done")
        self.pool.wait_state(third, "done")
        # Others come to moe alone.
        self.assertEqual(self.pool.job(third)["attempt_list"][0]["machine_name"], "moe")
        self.assertFalse(self.machine()["owner_away"])
        # It outlives the server, of which nothing is stored, and the client.
        self.pool.kill_server()
        self.pool.wait_serving()
        self.curly.kill()
        self.curly.start()
        wait_for(lambda: "not known" not in (self.rule_says() or "not known"),
                 "the server's word of anna")
        self.rule_for("anna", "--remove")
        self.assertEqual(self.rule_says(), "")

    def test_who_takes_no_part(self):
        """It is not known who is logged in, and stays so."""
        self.log_in("anna")
        self.start("curly", "moe", takes_part=False)
        self.rule_for("ben", "--idle-when", "hour < 0")
        self.owner_was_here()
        wait_for(lambda: json.loads(self.say("status", "--json"))["reason"] == "rule", "the rule")
        self.assertIn("not known", self.rule_says())

    def test_only_the_client_tells(self):
        self.start("curly")
        frame = struct.Struct("=IHHQIIIIq4q")
        told = frame.pack(0x314C4253, 48, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0) + b"anna 0\n"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as monitor:
            monitor.settimeout(harness.PATIENCE)
            monitor.connect(self.curly.state + "/owner.sock")
            monitor.send(told)
            answer = frame.unpack(monitor.recv(4096))
            self.assertEqual((answer[1], answer[5]), (49, errno.EPERM))
            self.assertEqual(monitor.recv(4096), b"")

    def test_bad_words(self):
        self.start("curly")
        for words, complaint in ((["--anywhere", "--idle-when", "hour < 0"], "needs --user"),
                                 (["--user", "anna x", "--idle-when", "hour < 0"],
                                  "cannot be the name of a user"),
                                 (["--user", "anna", "--anywhere", "--idle-when", "hour <"],
                                  "column")):
            code, _, err = self.pool.run("owner", "rules", *words, "--state", self.curly.state)
            self.assertNotEqual(code, 0)
            self.assertIn(complaint, err)


if __name__ == "__main__":
    unittest.main()
