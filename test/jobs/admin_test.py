"""What administrators do to a running pool: machines that are drained or cleared, shares and
quotas, without a restart and across restarts."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

NOT_FOUND, NOT_PERMITTED, CONFLICT, LIMIT = 4, 5, 6, 7


class Admin(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool(server_sets=["shares.ann=2"])
        self.pool.__enter__()
        self.addCleanup(self.pool.close)
        self.pool.start_server()

    def machine(self, name):
        return [m for m in self.pool.machines() if m["name"] == name][0]

    def said(self, *words, status=0):
        """What `sublet admin WORDS` prints for people."""
        code, out, err = self.pool.run("admin", *words)
        self.assertEqual(code, status, out + err)
        return out if status == 0 else err

    def machines_of(self, job):
        return [a["machine_name"] for a in self.pool.job(job)["attempt_list"]]

    def test_a_drained_machine(self):
        curly = self.pool.client("curly", slots=2).start()
        self.pool.wait_machines(1)
        saver = harness.Saver(self.pool)
        job = saver.submit(0, "nap")
        self.pool.wait_state(job, "running")
        self.assertEqual(self.said("drain", "curly"),
                         "curly takes no more jobs; the job that is there goes on\n")
        self.assertEqual(self.said("drain", "curly"),
                         "curly was drained already; the job that is there goes on\n")
        self.assertTrue(self.machine("curly")["draining"])
        self.assertRegex(self.pool.run("machines")[1], r"curly +drained")
        late = self.pool.submit("--", "true")[0]
        self.assertEqual(self.pool.job(late)["reason"],
                         "1 machine fits, drained by an administrator")
        self.pool.client("moe").start()
        self.pool.wait_state(late, "done")
        self.assertEqual(self.machines_of(late), ["moe"])
        # Whatever is restarted, it stays so, and the job goes on.
        self.pool.kill_server()
        self.pool.wait_serving()
        self.pool.wait_machines(1)
        for _ in range(3):
            self.pool.wait_state(self.pool.submit("--", "true")[0], "done")
        saver.finish()
        self.pool.wait_state(job, "done")
        self.assertEqual(self.machines_of(job), ["curly"])
        self.assertEqual(curly.stop(), 0)
        curly.start()
        harness.wait_for(lambda: self.machine("curly")["owner_away"], "curly to come back")
        self.assertTrue(self.machine("curly")["draining"])
        self.assertEqual(self.machine("curly")["state"], "busy")
        self.pool.clients["moe"].owner("active")
        harness.wait_for(lambda: self.machine("moe")["state"] == "busy", "moe's owner")
        waiting = self.pool.submit("--", "true")[0]
        self.assertEqual(self.pool.job(waiting)["reason"],
                         "2 machines fit: 1 used by its owner, 1 drained by an administrator")
        self.assertEqual(self.said("resume", "curly"), "curly takes jobs again\n")
        self.assertEqual(self.said("resume", "curly"), "curly was neither drained nor resting\n")
        self.pool.wait_state(waiting, "done")
        self.assertEqual(self.machines_of(waiting), ["curly"])

    def test_an_eviction(self):
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        saver = harness.Saver(self.pool)
        job = saver.submit(0, "nap", "--retries", "1")
        self.pool.wait_state(job, "running")
        saver.wait_said("start")
        self.pool.sublet("admin", "drain", "curly")
        self.pool.client("moe").start()
        self.pool.wait_machines(1)
        done = self.pool.sublet("admin", "evict", "curly")
        self.assertEqual(done["machines"], [{"name": "curly", "number": 1, "evicted": 1,
                                             "draining": True}])
        saver.wait_said("start", 2)
        saved = saver.said("save")
        self.assertEqual([attempt for attempt, _ in saved], [1])
        self.assertGreaterEqual(saver.said("start")[1][1], saved[0][1])
        saver.finish()
        self.pool.wait_state(job, "done")
        shown = self.pool.job(job)
        self.assertEqual(self.machines_of(job), ["curly", "moe"])
        self.assertEqual(shown["attempt_list"][0]["ended"], "evicted by an administrator")
        self.assertEqual(shown["evictions"], 1)
        self.assertEqual(self.said("evict", "curly"), "no job has to leave curly\n")
        status, out, err = self.pool.run("admin", "evict", "moe")
        self.assertIn("`sublet admin drain moe` prevents that", err)

    def test_shares(self):
        self.pool.wait_state(self.finished_job(), "done")
        user = self.pool.sublet("ls", "--all")["jobs"][0]["user"]
        both = [{"user": "ann", "shares": 2, "by_administrator": False},
                {"user": user, "shares": 1, "by_administrator": False}]
        self.assertEqual(self.pool.sublet("admin", "shares")["shares"], both)
        self.assertRegex(self.said("shares", user, "0.5"), user + r" +0\.5 +an administrator\n")
        standing = [u for u in self.pool.sublet("report")["standings"] if u["user"] == user][0]
        self.assertEqual(standing["shares"], 0.5)
        self.pool.sublet("admin", "shares", "ann", "7")
        self.pool.stop_server()
        self.pool.start_server(sets=["shares.ann=3"])
        self.assertEqual([(s["user"], s["shares"]) for s in
                          self.pool.sublet("admin", "shares")["shares"]],
                         [("ann", 7), (user, 0.5)])
        self.assertRegex(self.said("shares", "ann", "default"), r"ann +3 +the settings\n")
        self.assertIn("did you mean 'ann'?", self.said("shares", "anne", status=NOT_FOUND))
        code, out, err = self.pool.run("admin", "shares", "anne", "2")
        self.assertEqual(code, 0)
        self.assertIn("nobody called 'anne' has used the pool lately", err)

    def finished_job(self):
        self.pool.client("larry").start()
        return self.pool.submit("--", "true")[0]

    def test_quota(self):
        folder = self.pool.folder
        with open(os.path.join(folder, "input"), "wb") as f:
            f.write(bytes(100_000))
        send = ("--input", "input", "--", "true")
        job = self.pool.submit(*send)[0]
        user = self.pool.job(job)["user"]
        before = self.pool.sublet("admin", "quota", user)["quotas"][0]
        self.assertEqual((before["used"], before["by_administrator"]), (100_000, False))
        self.assertRegex(self.said("quota", user, "150 kB"), "146.5 KiB .*an administrator\n")
        status, out, err = self.pool.run("submit", *send)
        self.assertEqual(status, LIMIT, out + err)
        self.assertRegex(err, "of the 146.5 KiB allowed.*\n?.*ask the administrator to raise your quota")
        self.pool.kill_server()
        self.pool.wait_serving()
        self.assertEqual(self.pool.run("submit", *send)[0], LIMIT)
        self.pool.sublet("admin", "quota", user, "default")
        self.assertEqual(self.pool.sublet("admin", "quota", user)["quotas"][0], before)
        self.pool.submit(*send)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
    def test_only_administrators(self):
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        os.chmod(os.path.dirname(self.pool.socket), 0o755)
        sublet = self.pool.public(os.path.join(harness.BIN, "sublet"))

        def nobody(*words):
            done = subprocess.run(
                ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sublet, "admin",
                 *words], env=self.pool.environment(), cwd="/", text=True, capture_output=True,
                timeout=harness.PATIENCE)
            return done.returncode, done.stdout + done.stderr

        for words in (["drain", "curly"], ["resume", "curly"], ["evict", "curly"],
                      ["shares", "nobody", "5"], ["quota", "nobody", "1 TiB"]):
            status, said = nobody(*words)
            self.assertEqual(status, NOT_PERMITTED, said)
            self.assertRegex(said, "is for administrators, and nobody is not one")
        self.assertFalse(self.machine("curly")["draining"])
        self.pool.sublet("admin", "quota", "ann", "5 GiB")
        status, said = nobody("quota")
        self.assertEqual(status, 0)
        self.assertRegex(said, r"nobody +50\.0 GiB|nobody +50 GiB")
        self.assertNotIn("ann", said)


if __name__ == "__main__":
    unittest.main()
