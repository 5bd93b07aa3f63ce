"""Actions forbidden to jobs and to other users: signals to the daemons, access to the spool,
to other jobs' files and to other users' jobs. And the exact environment of a job. With root:
each slot has its own user id. (Forged orders: forged_test.py.)"""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

ROOT_ONLY = unittest.skipUnless(os.geteuid() == 0, "needs root: slots with user ids of their own")


class Isolation(unittest.TestCase):
    def output(self, pool, job):
        """What the job printed."""
        details = pool.wait_state(job, ["done", "failed"])
        target = os.path.join(pool.folder, "out-%d" % job)
        pool.run("fetch", job, "--into", target)
        texts = []
        for name in sorted(os.listdir(target)) if os.path.isdir(target) else []:
            with open(os.path.join(target, name)) as f:
                texts.append(f.read())
        return details, "".join(texts)

    def shell(self, pool, script, *options):
        return self.output(pool, pool.submit(*options, "--name", "probe", "--", "sh", "-c",
                                             script)[0])

    @ROOT_ONLY
    def test_job_cannot_signal_the_daemons(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            pids = [pool.supervisor.pid, pool.server_pid(), curly.process.pid,
                    curly.monitor_pids()[0]]
            script = "for p in %s $PPID; do kill -9 $p && echo killed $p; done; exit 0" % " ".join(
                map(str, pids))
            details, text = self.shell(pool, script)
            self.assertEqual(details["state"], "done", details)
            self.assertNotIn("killed", text)
            self.assertEqual(text.count("not permitted"), len(pids) + 1, text)
            for pid in pids:
                self.assertTrue(harness.alive(pid))

    @ROOT_ONLY
    def test_job_cannot_read_the_spool_or_others_files(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly", slots=2).start()
            pool.wait_machines(1)
            other = pool.submit("--name", "secret", "--", "sh", "-c",
                                "echo secret > mine; chmod 644 mine; sleep 300")[0]
            attempt = harness.wait_for(
                lambda: next((a for a in curly.attempts() if a.startswith("%d." % other)), None),
                "the other job")
            theirs = os.path.join(curly.state, "attempts", attempt)
            harness.wait_for(lambda: os.path.exists(os.path.join(theirs, "work", "mine")),
                             "its file")
            paths = [pool.state, os.path.join(pool.state, "pool.db"),
                     os.path.join(pool.state, "spool"), os.path.join(theirs, "work"),
                     os.path.join(theirs, "work", "mine"), os.path.join(theirs, "checkpoint"),
                     os.path.join(theirs, "order"), os.path.join(curly.state, "machine")]
            script = "; ".join(
                "if [ -d %s ]; then ls %s; else cat %s; fi > /dev/null 2>&1 && echo READ %s" %
                (p, p, p, p) for p in paths)
            details, text = self.shell(pool, script + "; exit 0")
            self.assertEqual(details["state"], "done", details)
            self.assertEqual(text, "", "nothing of these may be read")
            details, text = self.shell(pool, "id -u; stat -c %%u %s/work; exit 0" % theirs)
            mine, other_uid = text.split()[:2]
            self.assertNotEqual(mine, "0")
            self.assertNotEqual(mine, other_uid)
            pool.sublet("rm", other)

    @ROOT_ONLY
    def test_others_jobs_are_theirs(self):
        """Another user may list states, but not remove, inspect or fetch."""
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("--name", "mine", "--", "echo", "mine")[0]
            pool.wait_state(job, "done")

            def as_nobody(*args):
                done = subprocess.run(
                    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                     pool.public(os.path.join(harness.BIN, "sublet"))] + list(map(str, args)), text=True,
                    cwd="/", env=pool.environment(), stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
                return done.returncode, done.stdout + done.stderr
            for action in ("rm", "hold", "show", "fetch"):
                args = [action, job] + (["--into", "/tmp"] if action == "fetch" else [])
                status, text = as_nobody(*args)
                self.assertEqual(status, 5, action + ": " + text)
                self.assertIn("belongs to root", text)
            status, text = as_nobody("ls", "--all", "--user", "*")
            self.assertEqual(status, 0, text)
            self.assertNotIn("mine", text, "others' names are not shown")
            self.assertEqual(pool.job_state(job), "done")

    def test_environment(self):
        """Compares the environment that a job prints."""
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            script = ("env | grep -v '^_=' | sort; pwd; umask; ulimit -c; cat /proc/self/stat | "
                      "cut -d' ' -f5-6; ls -l /proc/self/fd | grep -c ' -> '; readlink "
                      "/proc/self/fd/0; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; id -u; id -G")
            details, text = self.shell(pool, script, "--env", "COLOUR=blue")
            self.assertEqual(details["state"], "done", details)
            lines = text.split("\n")
            work = os.path.join(curly.state, "attempts", "%d.1" % details["id"], "work")
            folder = os.path.dirname(work)
            expected = sorted(["COLOUR=blue", "HOME=" + work, "TMPDIR=" + work, "PWD=" + work,
                               "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
                               "SUBLET_JOB=%d" % details["id"], "SUBLET_ATTEMPT=1",
                               "SUBLET_CHECKPOINT_DIR=" + folder + "/checkpoint",
                               "SUBLET_STATUS=" + folder + "/status"])
            self.assertEqual(sorted(lines[:len(expected)]), expected)
            rest = lines[len(expected):]
            self.assertEqual(rest[0], work)
            self.assertEqual(rest[1], "0077")
            self.assertEqual(rest[2], "0", "no core files")
            # The job leads its own session and process group.
            group, session = rest[3].split()
            self.assertEqual(group, session)
            self.assertNotEqual(int(session), os.getsid(curly.process.pid))
            self.assertEqual(int(rest[4]), 4, "0, 1, 2 and ls's own: " + text)
            self.assertEqual(rest[5], "/dev/null")
            self.assertEqual(rest[6].split()[1], "0" * 16, "no signal blocked")
            self.assertEqual(rest[7].split()[1], "0" * 16, "none ignored")
            if os.geteuid() == 0:
                self.assertNotEqual(rest[9], "0")
                self.assertEqual(rest[9], rest[10], "no groups but its own")


if __name__ == "__main__":
    unittest.main()
