"""What a running program says of itself, and how much of its work is at risk, in `sublet show`."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

PYTHON = "/usr/bin/python3"
PROGRAM = """
import os, time
from sublet import checkpoint

def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass

def wait(c, name):
    while not os.path.exists(name):
        c.point()
        time.sleep(0.01)

with checkpoint.open("told", 1) as c:
    c.value("step", 0)
    c.say("a line\\nand \\x1b[31mcolour")
    burn(0.3)
    wait(c, "save")
    c.say("saves")
    c.save()
    wait(c, "end")
"""


@unittest.skipUnless(os.path.exists(PYTHON), "skipped: %s is not installed" % PYTHON)
class Told(unittest.TestCase):
    def make_batch(self, desk):
        package = os.path.join(harness.ROOT, "python", "sublet")
        inputs = ["{ file = \"%s/%s\", name = \"sublet/%s\" }" % (package, name, name)
                  for name in os.listdir(package)
                  if name.endswith(".py") and not name.endswith(("_test.py", "testing.py"))]
        os.mkdir(desk)
        with open(os.path.join(desk, "told.py"), "w") as f:
            f.write(PROGRAM)
        with open(os.path.join(desk, "told.toml"), "w") as f:
            f.write("[[job]]\nprogram = \"%s\"\narguments = [\"-B\", \"told.py\"]\n"
                    "inputs = [\"told.py\", %s]\n" % (PYTHON, ", ".join(inputs)))

    def sign(self, pool, curly, job, *names):
        """Makes these files in the folder of the attempt that runs: a machine that is very busy may
        evict the job, which begins again then."""
        attempt = "%d.%d" % (job, pool.job(job)["attempts"])
        for name in names:
            try:
                open(os.path.join(curly.state, "attempts", attempt, "work", name), "w").close()
            except FileNotFoundError:
                pass

    def wait_told(self, pool, job, good, what):
        return harness.wait_for(lambda: next((d for d in [pool.job(job)] if good(d)), None), what)

    def test_message_and_risk(self):
        with harness.Pool(["scheduling.lease=6 s"]) as pool:
            desk = os.path.join(pool.folder, "desk")
            self.make_batch(desk)
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("told.toml", cwd=desk)[0]
            told = self.wait_told(pool, job, lambda d: d["message"] and d["at_risk_ms"] >= 300,
                                  "the first message")
            self.assertEqual(told["message"], "a line\nand \x1b[31mcolour")
            shown = pool.run("show", str(job))[1]
            self.assertIn("message    a line\\nand \\x1b[31mcolour\n", shown)
            self.assertIn(" of CPU that no checkpoint on the server holds\n", shown)
            self.wait_told(pool, job, lambda d: self.sign(pool, curly, job, "save") or
                           d["message"] == "saves" and 0 <= d["at_risk_ms"] < 200,
                           "less at risk after the save")
            harness.wait_for(lambda: self.sign(pool, curly, job, "save", "end") or
                             pool.job_state(job) == "done", "the job to be done")
            done = pool.job(job)
            self.assertEqual((done["message"], done["at_risk_ms"]), ("", -1))


if __name__ == "__main__":
    unittest.main()
