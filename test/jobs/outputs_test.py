"""Outputs that are folders and patterns, from the job's folder, which a hostile job may
have filled with anything, to the user's; programs for several platforms."""

import os
import platform
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

# File names are bytes; Python represents them as str.
STRANGE = ["new\nline", os.fsdecode(b"not \xff utf-8"), "-dash", "sp ace", "\x1b[2J"]


class Outputs(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.pool.client("curly", slots=2).start()
        self.pool.wait_machines(1)

    def write(self, name, text):
        path = os.path.join(self.pool.folder, name)
        with open(path, "w", errors="surrogateescape") as f:
            f.write(text)
        os.chmod(path, 0o755)
        return path

    def fetched(self, folder):
        """Every file below the folder: name and contents."""
        found = {}
        top = os.path.join(self.pool.folder, folder)
        for where, _, names in os.walk(top):
            for name in names:
                path = os.path.join(where, name)
                self.assertFalse(os.path.islink(path), path)
                with open(path) as f:
                    found[os.path.relpath(path, top)] = f.read()
        return found

    def ended(self, *submit):
        job = self.pool.submit(*submit)[0]
        return self.pool.wait_state(job, ["done", "failed"])

    def test_folders_and_patterns(self):
        make = "\n".join("printf %%s here > '%s'" % name
                         for name in ["results/" + n for n in STRANGE] +
                         ["results/.hidden", "results/deep/er/x", "a.png", "b.png", "c.txt",
                          "star*", "starry", ".d.png", "run-1/log", "run-2/log", "run-2/other"])
        self.write("prog", "#!/bin/sh\nmkdir -p results/deep/er run-1 run-2\n" + make + "\n")
        status, out, err = self.pool.run(
            "submit", "--wait", "--into", "back", "--output", "results/", "--output", "*.png?",
            "--output", "run-[12]/log", "--output", "star\\*", "--output", "none-*?",
            "--output", "none/?", "--", "./prog")
        self.assertEqual(status, 0, out + err)
        expected = (["results/" + n for n in STRANGE] +
                    ["results/.hidden", "results/deep/er/x", "a.png", "b.png", "star*",
                     "run-1/log", "run-2/log"])
        self.assertEqual(self.fetched("back"), {name: "here" for name in expected})
        self.assertNotIn("\x1b", out + err)
        # Names with control characters are shown safely.
        job = self.pool.sublet("ls", "--all")["jobs"][0]["id"]
        status, out, err = self.pool.run("show", job)
        self.assertEqual(status, 0, err)
        self.assertIn("results/new\\nline", out)
        self.assertIn("not \\xff utf-8", out)
        self.assertNotIn("\x1b", out)

    def test_more_than_one_answer_holds(self):
        names = ["many/%d" % i for i in range(100)]
        status, out, err = self.pool.run(
            "submit", "--wait", "--into", "back", "--output", "many/", "--", "sh", "-c",
            "mkdir many; for i in $(seq 0 99); do echo $i > many/$i; done")
        self.assertEqual(status, 0, out + err)
        self.assertEqual(set(self.fetched("back")), set(names))
        job = self.pool.sublet("ls", "--all")["jobs"][0]["id"]
        outputs = self.pool.job(job)["outputs"]
        self.assertLessEqual(set(names), {output["name"] for output in outputs})

    def test_what_is_missing_or_too_much(self):
        with self.subTest("nothing matches"):
            details = self.ended("--output", "*.png", "--", "true")
            self.assertEqual(details["attempt_list"][-1]["ended"], "output missing")
            self.assertIn("'*.png' was not produced", details["reason"])
        with self.subTest("an empty folder"):
            details = self.ended("--output", "r/", "--", "mkdir", "r")
            self.assertIn("'r/' was not produced", details["reason"])
        with self.subTest("too many files"):
            details = self.ended("--output", "r/", "--output", "small", "--", "sh", "-c",
                                 "mkdir r; cd r; seq 5000 | xargs touch; echo x > ../small")
            self.assertEqual(details["attempt_list"][-1]["ended"], "output missing")
            self.assertIn("exceeds the number of output files", details["reason"])
            self.assertEqual([o["name"] for o in details["outputs"]], ["small"])
        with self.subTest("the machine works on"):
            self.assertEqual(self.ended("--", "true")["state"], "done")

    def test_a_hostile_folder(self):
        """Only the job's own regular files leave the machine."""
        secret = self.write("secret", "secret")
        os.chmod(secret, 0o600)
        self.write("prog", "#!/bin/sh\nmkdir -p r/d; cd r; echo mine > mine\n"
                           "ln -s %s link; ln -s / root; ln -s . round; mkfifo pipe\n"
                           "ln %s hard 2>/dev/null; ln -s ../.. d/up\n"
                           "truncate -s 1G sparse\n"
                           "python3 -c 'import socket; socket.socket(socket.AF_UNIX)"
                           ".bind(\"sock\")' 2>/dev/null; true\n" % (secret, secret))
        job = self.pool.submit("--output", "r/[!s]*", "--output", "r/d/?", "--output", "r/*/secret?",
                               "--output", "r/so*?", "--", "./prog", cwd=self.pool.folder)[0]
        details = self.pool.wait_state(job, ["done", "failed"])
        self.assertEqual(details["state"], "done", details)
        names = [o["name"] for o in details["outputs"]]
        if os.geteuid() == 0:  # otherwise the secret belongs to the job's user
            self.assertEqual(names, ["r/mine"])
        self.assertLessEqual(set(names), {"r/mine", "r/hard"})

    def test_two_jobs_with_one_folder(self):
        self.write("b.toml", '[[job]]\nprogram = "sh"\ncount = 2\noutputs = ["r/"]\n'
                             'arguments = ["-c", "mkdir r; echo {index} > r/x"]\n')
        jobs = self.pool.submit("b.toml", cwd=self.pool.folder)
        ids = "%d-%d" % (jobs[0], jobs[-1])
        self.assertEqual(self.pool.run("wait", ids)[0], 0)
        status, _, err = self.pool.run("fetch", ids, "--into", "mixed")
        self.assertEqual(status, 6, err)
        self.assertFalse(os.path.exists(os.path.join(self.pool.folder, "mixed")))
        self.assertEqual(self.pool.run("fetch", ids, "--by-job", "--into", "apart")[0], 0)
        self.assertEqual(self.fetched("apart"),
                         {"%d/r/x" % job: "%d\n" % k for k, job in enumerate(jobs)})

    def test_values_in_names_make_no_patterns(self):
        self.write("b.toml", '[[job]]\nprogram = "sh"\noutputs = ["{n}.out"]\n'
                             'arguments = ["-c", "echo $0 > \\"$0.out\\"; echo no > ab.out", "{n}"]\n'
                             'parameters = { n = ["a*", "[1]", "q?"] }\n')
        status, out, err = self.pool.run("submit", "--wait", "--into", "back", "b.toml")
        self.assertEqual(status, 0, out + err)
        self.assertEqual(self.fetched("back"),
                         {"a*.out": "a*\n", "[1].out": "[1]\n", "q?.out": "q?\n"})

    def test_programs_of_platforms(self):
        """Under `setarch i686` the kernel reports that architecture to the client."""
        here = "linux/" + platform.machine()
        self.write("one", "#!/bin/sh\necho one > which\n")
        self.write("two", "#!/bin/sh\necho two > which\n")
        batch = ('[[job]]\nname = "p"\noutputs = ["which"]\nprogram = { "%s" = "./one", '
                 '"linux/i686" = "./two" }\nneeds = { architecture = "%%s" }\n' % here)
        self.write("here.toml", batch % platform.machine())
        self.write("other.toml", batch % "i686")
        out = self.pool.run("submit", "--dry-run", "here.toml")[1]
        self.assertIn("./one.%s on %s, ./two.linux-i686 on linux/i686" %
                      (here.replace("/", "-"), here), out)
        self.assertEqual(self.pool.run("submit", "--wait", "--into", "h", "here.toml")[0], 0)
        self.assertEqual(self.fetched("h"), {"which": "one\n"})
        only = self.write("only.toml", '[[job]]\nprogram = { "linux/i686" = "./two" }\n'
                                       'outputs = ["which"]\n')
        job = self.pool.submit("--even-so", only)[0]
        details = self.pool.job(job)
        self.assertEqual((details["state"], details["reason"]),
                         ("waiting", "no machine is linux/i686"))
        # Still there after a restart.
        self.pool.kill_server()
        self.pool.wait_serving()
        harness.wait_for(lambda: self.pool.job(job)["reason"] == "no machine is linux/i686",
                         "the reason to be known again")
        if platform.machine() != "x86_64" or not shutil.which("setarch"):
            self.skipTest("cannot pose as another architecture here")
        self.pool.client("old", prefix=["setarch", "i686"]).start()
        self.pool.wait_state(job, "done")
        self.assertEqual(self.pool.run("fetch", job, "--into", "o")[0], 0)
        self.assertEqual(self.fetched("o"), {"which": "two\n"})
        self.assertEqual(self.pool.run("submit", "--wait", "--into", "p", "other.toml")[0], 0)
        self.assertEqual(self.fetched("p"), {"which": "two\n"})


if __name__ == "__main__":
    unittest.main()
