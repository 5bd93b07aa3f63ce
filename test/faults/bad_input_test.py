"""Wrong input and full disks: a clear message, the right exit status, and nothing lost."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness


class BadInput(unittest.TestCase):
    def ended(self, pool, *submit):
        job = pool.submit(*submit)[0]
        details = pool.wait_state(job, ["done", "failed"])
        return details, details["attempt_list"][-1]

    def test_jobs_that_go_wrong(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly", slots=2).start()
            pool.wait_machines(1)
            with self.subTest("unknown program"):
                details, last = self.ended(pool, "--", "no-such-program-anywhere")
                self.assertEqual(details["state"], "failed")
                self.assertEqual(last["ended"], "could not start")
                self.assertIn("no-such-program-anywhere", details["reason"])
            with self.subTest("exit status"):
                details, last = self.ended(pool, "--", "sh", "-c", "exit 7")
                self.assertEqual((last["ended"], last["exit_status"]), ("exit status", 7))
            with self.subTest("output never produced"):
                details, last = self.ended(pool, "--output", "answer", "--", "true")
                self.assertEqual(last["ended"], "output missing")
                self.assertIn("answer", details["reason"])
            with self.subTest("optional output never produced"):
                details, last = self.ended(pool, "--output", "answer?", "--", "true")
                self.assertEqual(details["state"], "done")
            with self.subTest("killed by a signal"):
                details, last = self.ended(pool, "--", "sh", "-c", "kill -SEGV $$")
                self.assertEqual((last["ended"], last["signal"]), ("killed by a signal", 11))
            with self.subTest("over its CPU limit"):
                details, last = self.ended(pool, "--cpu-limit", "1 s", "--", "sh", "-c",
                                           "while :; do :; done")
                self.assertEqual(last["ended"], "over its limits", details)
            with self.subTest("over its time"):
                details, last = self.ended(pool, "--wall-limit", "500 ms", "--", "sleep", "300")
                self.assertEqual(last["ended"], "over its limits", details)
            with self.subTest("retries are used up by failures"):
                # More of them than one answer holds (idl/job_scheduler.idl, SHOWN).
                job = pool.submit("--retries", "60", "--", "false")[0]
                details = pool.wait_state(job, "failed")
                self.assertEqual([a["number"] for a in details["attempt_list"]],
                                 list(range(1, 62)))
            with self.subTest("the client's log names the ends"):
                with open(os.path.join(pool.folder, "client-curly.log")) as f:
                    log = f.read()
                for words in (": done", ": exit status. ", ": killed by a signal. ",
                              ": could not start. ", ": output missing. ", ": over its limits. "):
                    self.assertIn(" is over" + words, log)
                self.assertNotRegex(log, r"\bend \d")

    def test_output_larger_than_its_bound(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly").start()
            pool.wait_machines(1)
            batch = os.path.join(pool.folder, "b.toml")
            with open(batch, "w") as f:
                f.write('[[job]]\nname = "loud"\nprogram = "sh"\n'
                        'arguments = ["-c", "yes | head -c 3000000"]\n'
                        'limits = { output_text = "100 kB" }\n'
                        '[[job]]\nname = "large"\nprogram = "sh"\noutputs = ["big"]\n'
                        'arguments = ["-c", "yes | head -c 3000000 > big"]\n'
                        'limits = { output_file = "100 kB" }\n')
            loud, large = pool.submit(batch)
            details = pool.wait_state(loud, ["done", "failed"])
            self.assertEqual(details["state"], "done", details)
            out = [o for o in details["outputs"] if o["name"] == "stdout"][0]
            self.assertTrue(out["cut"])
            self.assertLessEqual(out["size"], 100 * 1024)
            details = pool.wait_state(large, ["done", "failed"])
            self.assertEqual(details["state"], "failed", details)

    def test_what_the_command_refuses(self):
        with harness.Pool() as pool:
            pool.start_server()
            cases = [
                (("show", 99), 4, "there is no job 99"),
                (("rm", 99), 4, "job 99"),
                (("submit", "--input", "missing.dat", "--", "true"), 3, "missing.dat"),
                (("submit", "--", "./missing-program"), 3, "missing-program"),
                (("submit", "--output", "../escape", "--", "true"), 2, ".."),
                (("submit",), 2, "submit"),
                (("submit", "missing.toml"), 3, "missing.toml"),
            ]
            for args, want, part in cases:
                status, out, err = pool.run(*args)
                self.assertIn(part, err, args)
                self.assertEqual(status, want, (args, err))
                self.assertLessEqual(err.count("\n"), 3, "one clear sentence and what to do")
            self.assertEqual(pool.sublet("ls", "--all")["jobs"], [])

    def test_server_down(self):
        with harness.Pool() as pool:
            with harness.Pace() as pace:
                status, out, err = pool.run("ls")
            self.assertEqual(status, 8, err)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn(pool.socket, err)
            pace.check(self, 2, "the report of a server that is down")

    def start_refused(self, args, part):
        done = subprocess.run(args, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=harness.PATIENCE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(part, done.stdout)
        self.assertLess(done.stdout.count("\n"), 8, done.stdout)

    def test_state_folder_not_writable(self):
        with harness.Pool() as pool:
            blocked = os.path.join(pool.folder, "file")
            open(blocked, "w").close()
            self.start_refused([os.path.join(harness.BIN, "sublet-server"), "--state",
                                blocked + "/state", "--socket", pool.socket], blocked)
            self.start_refused([os.path.join(harness.BIN, "sublet-client"), "--state",
                                blocked + "/state", "--server", pool.socket], blocked)

    def test_bad_settings(self):
        with harness.Pool() as pool:
            config = os.path.join(pool.folder, "server.toml")
            with open(config, "w") as f:
                f.write("[server]\nsokcet = 'x'\n")
            self.start_refused([os.path.join(harness.BIN, "sublet-server"), "--config", config,
                                "--state", pool.state], "server.toml:2:1")
            self.start_refused([os.path.join(harness.BIN, "sublet-server"), "--set",
                                "scheduling.jobs=no-such", "--state", pool.state], "fair-share")

    @unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a small disk")
    def test_server_disk_full(self):
        with harness.Pool(server_sets=["server.reserve=2 MiB"]) as pool:
            os.makedirs(pool.state)
            mount = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=755", "tmpfs", pool.state]
            if subprocess.run(mount).returncode != 0:
                self.skipTest("cannot mount a tmpfs here")
            try:
                self.fill_the_disk(pool)
            finally:
                pool.close()
                subprocess.run(["umount", "-l", pool.state])

    def fill_the_disk(self, pool):
        pool.start_server()
        pool.client("curly").start()
        pool.wait_machines(1)
        release = os.path.join(pool.folder, "release")
        running = pool.submit("--name", "running", "--output", "out", "--", "sh", "-c",
                              "while [ ! -e %s ]; do sleep 0.1; done; echo 1 > out" % release)[0]
        pool.wait_state(running, "running")
        # Unbuffered: to close it must not write what the disk has no room for.
        with open(os.path.join(pool.state, "filler"), "wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"x" * 65536)
            except OSError:
                pass
        acknowledged = []

        def refused():
            status, out, err = pool.run("--json", "submit", "--", "true")
            if status == 0:
                acknowledged.append(1)
            return status == 8 and "disk" in err + out
        harness.wait_for(refused, "submissions to be refused\n" + pool.log("server"))
        # The reserve was released: running jobs can end, and their ends are recorded.
        open(release, "w").close()
        details = pool.wait_state(running, ["done", "failed"])
        self.assertEqual(details["state"], "done", details)
        self.assertEqual(len(pool.sublet("ls", "--all", "--limit", "1000")["jobs"]),
                         1 + len(acknowledged))
        os.unlink(os.path.join(pool.state, "filler"))
        harness.wait_for(lambda: pool.run("submit", "--", "true")[0] == 0,
                         "submissions to be taken again\n" + pool.log("server"))


if __name__ == "__main__":
    unittest.main()
