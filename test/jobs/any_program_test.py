"""The example of an ordinary program without checkpoints: a job runs for each file, one is
evicted and starts again, and the results are those of an undisturbed run."""

import gzip
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

EXAMPLE = os.path.join(harness.ROOT, "examples", "any-program", "gzip.toml")


class AnyProgram(unittest.TestCase):
    def test_each_file_comes_back_compressed(self):
        with harness.Pool() as pool:
            pool.start_server()
            pool.client("curly", slots=2).start()
            pool.client("moe").start()
            pool.wait_machines(2)
            target = os.path.join(pool.folder, "compressed")
            status, out, err = pool.run("submit", "--wait", "--into", target, EXAMPLE)
            self.assertEqual(status, 0, err + out)
            folder = os.path.join(harness.ROOT, "idl")
            files = sorted(name for name in os.listdir(folder) if name.endswith(".idl"))
            self.assertEqual([name + ".gz" for name in files], sorted(os.listdir(target)))
            for name in files:
                with open(os.path.join(folder, name), "rb") as f:
                    original = f.read()
                with gzip.open(os.path.join(target, name + ".gz")) as f:
                    self.assertEqual(f.read(), original, name)

    def test_evicted_it_starts_anew(self):
        """The same kind of job, but one that waits for permission to end."""
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            marks = os.path.join(pool.folder, "marks")
            os.makedirs(marks)
            os.chmod(marks, 0o777)
            page = os.path.join(pool.folder, "page.txt")
            shutil.copy(os.path.join(harness.ROOT, "docs", "command.md"), page)
            script = ("test ! -e page.txt.gz || exit 1; echo half > page.txt.gz; mktemp %s/XXXXXX; "
                      "while [ ! -e %s/go ]; do sleep 0.05; done; gzip --force --no-name page.txt")
            job = pool.submit("--input", page, "--output", "page.txt.gz", "--", "sh", "-c",
                              script % (marks, marks))[0]
            harness.wait_for(lambda: os.listdir(marks), "the job to run\n" + pool.all_logs())
            curly.owner("active")
            harness.wait_for(lambda: not curly.attempts(), "the job to leave\n" + pool.all_logs())
            self.assertEqual(pool.job_state(job), "waiting")
            open(os.path.join(marks, "go"), "w").close()
            curly.owner("away")
            details = pool.wait_state(job, ["done", "failed"])
            self.assertEqual(details["state"], "done", details)
            first, second = details["attempt_list"]
            self.assertEqual(first["ended"], "owner came back", details)
            self.assertEqual((first["checkpoint_bytes"], second["resumed_ppm"]), (0, -1), details)
            self.assertEqual(first["cpu_lost_ms"], first["cpu_ms"], "all of it was lost")
            status, _, err = pool.run("fetch", job)
            self.assertEqual(status, 0, err)
            with gzip.open(page + ".gz") as f, open(page, "rb") as original:
                self.assertEqual(f.read(), original.read())


if __name__ == "__main__":
    unittest.main()
