"""A job in Python, evicted twice: its output is that of an undisturbed run. The package is sent
along, so that the workstation needs only Python."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from training import TrainingCase

# That of the machine: a job may not read the one in somebody's home.
PYTHON = "/usr/bin/python3"
PROGRAM = """
import array
import random
import time
from sublet import checkpoint

with checkpoint.open("sums", 1) as c:
    random.seed(1)
    c.generator("random", random)
    sums = c.array("sums", array.array("d", [0.0] * 100))
    for step in c.range("step", 2000):
        time.sleep(0.001)  # a job has hardly any CPU beside other tests
        sums[step % 100] += random.random()
        c.progress(step + 1, 2000)
    print(sums.tolist())
"""


@unittest.skipUnless(os.path.exists(PYTHON), "skipped: %s is not installed" % PYTHON)
class Python(TrainingCase):
    def make_batch(self, folder):
        package = os.path.join(harness.ROOT, "python", "sublet")
        names = [name for name in os.listdir(package) if name.endswith(".py") and
                 not name.endswith(("_test.py", "testing.py"))]
        inputs = ["\"sums.py\""] + ["{ file = \"%s/%s\", name = \"sublet/%s\" }" % (
            package, name, name) for name in names]
        os.mkdir(folder)
        with open(os.path.join(folder, "sums.py"), "w") as f:
            f.write(PROGRAM)
        with open(os.path.join(folder, "sums.toml"), "w") as f:
            f.write("[[job]]\nprogram = \"sh\"\ninputs = [%s]\n"
                    "arguments = [\"-c\", \"exec %s -B sums.py\"]\n" % (", ".join(inputs), PYTHON))

    def test_evicted_twice(self):
        with harness.Pool() as pool:
            folder = os.path.join(pool.folder, "desk")
            self.make_batch(folder)
            expected = subprocess.run(
                [PYTHON, "-B", "sums.py"], cwd=folder, check=True, text=True, stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.path.join(harness.ROOT, "python")}).stdout
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            job = pool.submit("sums.toml", cwd=folder)[0]
            for _ in range(2):
                self.wait_progress(curly)
                curly.owner("active")
                harness.wait_for(lambda: not curly.attempts(), "the job to leave")
                curly.owner("away")
            details = pool.wait_state(job, ["done", "failed"])
            self.assertEqual((details["state"], details["evictions"]), ("done", 2), details)
            resumed = [attempt["resumed_ppm"] for attempt in details["attempt_list"]]
            self.assertTrue(0 < resumed[1] <= resumed[2] < 1000000, resumed)
            self.assertEqual(pool.output(job)[1], expected)


if __name__ == "__main__":
    unittest.main()
