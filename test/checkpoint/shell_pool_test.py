"""The example of a shell script that saves its variables, in a pool: the owner comes back twice,
and it prints what an undisturbed run prints."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

SCRIPT = os.path.join(harness.ROOT, "examples", "shell-loop", "collatz.sh")
EVICTIONS = 2
# Stands before the command in the job's PATH: no attempt begins its loop before it may.
GATE = """#!/bin/sh
if [ "$2" = load ]; then
  echo "$SUBLET_ATTEMPT" >>%(marks)s/begun
  while [ ! -e %(marks)s/go ]; do sleep 0.02; done
fi
exec %(sublet)s "$@"
"""


class ShellInPool(unittest.TestCase):
    def make_gate(self, pool):
        marks = os.path.join(pool.folder, "marks")
        os.mkdir(marks)
        os.chmod(marks, 0o777)
        with open(os.path.join(marks, "sublet"), "w") as f:
            f.write(GATE % {"marks": marks, "sublet": pool.public(os.path.join(harness.BIN,
                                                                               "sublet"))})
        os.chmod(os.path.join(marks, "sublet"), 0o755)
        return marks

    def last_begun(self, marks):
        try:
            with open(os.path.join(marks, "begun")) as f:
                return int(f.read().split()[-1])
        except FileNotFoundError:
            return 0

    def test_evicted_it_goes_on_where_it_was(self):
        whole = subprocess.run([SCRIPT, "0", "50"], check=True, text=True,
                               stdout=subprocess.PIPE, env={"PATH": harness.BIN + ":" +
                                                            os.environ["PATH"]}).stdout
        with harness.Pool() as pool:
            pool.start_server()
            # A job that leaves runs in the idle class: beside other tests for a long time.
            curly = pool.client("curly", extra=["--set", "save_deadline_most=10 min"]).start()
            pool.wait_machines(1)
            marks = self.make_gate(pool)
            go = os.path.join(marks, "go")
            job = pool.submit("--save-deadline", "10 min", "--env", "PATH=%s:/usr/bin:/bin" % marks,
                              "--", SCRIPT, "0", "50")[0]
            begun = []
            for generation in range(1, EVICTIONS + 1):
                seen = begun[-1] if begun else 0
                harness.wait_for(lambda: self.last_begun(marks) > seen,
                                 lambda: "an attempt to begin\n" + pool.all_logs())
                begun.append(self.last_begun(marks))
                curly.owner("active")
                harness.wait_for(lambda: self.attempt(pool, job, begun[-1])["state"] == "leaving",
                                 lambda: "it to be asked to leave\n" + pool.all_logs())
                open(go, "w").close()
                harness.wait_for(lambda: self.attempt(pool, job, begun[-1])["state"] == "ended",
                                 lambda: "it to leave\n" + pool.all_logs())
                os.remove(go)
                left = self.attempt(pool, job, begun[-1])
                self.assertEqual((left["ended"], left["exit_status"], left["generation"]),
                                 ("owner came back", 75, generation), "%s\n%s" % (left, pool.all_logs()))
                self.assertGreater(left["checkpoint_bytes"], 0)
                curly.owner("away")
            open(go, "w").close()
            details, printed = pool.output(job)
            self.assertEqual((details["state"], printed), ("done", whole), details)

    def attempt(self, pool, job, number):
        return next(a for a in pool.job(job)["attempt_list"] if a["number"] == number)


if __name__ == "__main__":
    unittest.main()
