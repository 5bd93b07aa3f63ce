"""The standard input of a job: a file, or that of the command; again from its beginning after
an eviction; and none."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness


class StandardInput(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.pool.__enter__()
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        self.curly = self.pool.client("curly").start()
        self.pool.wait_machines(1)

    def write(self, name, text):
        path = os.path.join(self.pool.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def printed(self, *words, stdin=None):
        status, out, err = self.pool.run("submit", "--wait", *words, stdin=stdin)
        self.assertEqual(status, 0, (words, out, err))
        return out

    def test_a_file_and_that_of_the_command(self):
        path = self.write("data/words", "pear\napple\n")
        self.assertEqual(self.printed("--stdin", path, "--", "sort"), "apple\npear\n")
        with open(self.write("more", "2\n1\n" + 300_000 * "3\n")) as stdin:
            self.assertEqual(self.printed("--stdin", "-", "--", "sort", stdin=stdin),
                             "1\n2\n" + 300_000 * "3\n")
        self.assertEqual(self.printed("--", "cat"), "")
        self.assertEqual(self.printed("--input", path + "=d/e f", "--stdin", "d/e f", "--",
                                      "wc", "-l"), "2\n")

    def test_a_batch(self):
        for n in range(2):
            self.write("part-%d" % n, "%d\n" % n)
        batch = self.write("b.toml", '[defaults]\nprogram = "sh"\n'
                                     'arguments = ["-c", "cat > out-$0; cat out-$0", "{index}"]\n'
                                     'stdin = "part-{index}"\n'
                                     'outputs = ["out-{index}"]\n[[job]]\ncount = 2\n')
        target = os.path.join(self.pool.folder, "back")
        self.assertEqual(self.pool.run("submit", "--wait", "--into", target, batch)[0], 0)
        for n in range(2):
            with open(os.path.join(target, "out-%d" % n)) as f:
                self.assertEqual(f.read(), "%d\n" % n)
        job = json.loads(self.pool.run("ls", "--all", "--reverse", "--json")[1])["jobs"][0]["id"]
        self.assertIn("stdin      part-0\n", self.pool.run("show", job)[1])
        self.assertEqual(self.pool.job(job)["description"]["stdin"], "part-0")

    def test_a_file_is_sent_once(self):
        """However many jobs read it."""
        path = self.write("data", "d\n")
        plan = json.loads(self.pool.run("submit", "--dry-run", "--json", "--stdin", path, "--count",
                                        "9", "--", "cat")[1])
        self.assertEqual((plan["job_count"], plan["files"], plan["bytes"]), (9, 1, 2))

    def test_what_is_refused(self):
        path = self.write("data", "")
        for words, status, part in ((["--stdin", "-", "--each"], 2, "both read standard input"),
                                    (["--stdin", path + "x"], 3, "does not exist"),
                                    (["--stdin", self.pool.folder], 3, "not an ordinary file")):
            done = self.pool.run("submit", *words, "--", "cat")
            self.assertEqual(done[0], status, words)
            self.assertIn(part, done[2], words)

    def test_again_from_the_beginning(self):
        """A job that has read a line when it is evicted."""
        marks = os.path.join(self.pool.folder, "marks")
        os.makedirs(marks)
        os.chmod(marks, 0o777)
        script = ("read line; mktemp %s/XXXXXX > /dev/null; while [ ! -e %s/go ]; do sleep 0.05; "
                  "done; echo $line; cat" % (marks, marks))
        job = self.pool.submit("--stdin", self.write("data", "first\nsecond\n"), "--", "sh", "-c",
                               script)[0]
        harness.wait_for(lambda: os.listdir(marks), "the job to run\n" + self.pool.all_logs())
        self.curly.owner("active")
        harness.wait_for(lambda: not self.curly.attempts(),
                         "the job to leave\n" + self.pool.all_logs())
        open(os.path.join(marks, "go"), "w").close()
        self.curly.owner("away")
        details = self.pool.wait_state(job, ["done", "failed"])
        self.assertEqual((details["state"], details["evictions"]), ("done", 1), details)
        self.assertEqual(self.pool.run("logs", job)[1], "first\nsecond\n")


if __name__ == "__main__":
    unittest.main()
