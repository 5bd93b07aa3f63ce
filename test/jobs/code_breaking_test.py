"""A search for a key in parts, on machines whose owners come back: one part finds the
key, the rest of the batch is removed, and the key arrives."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from training import TrainingCase

PROGRAM = os.path.join(harness.BIN, "code-breaking")
EXAMPLE = os.path.join(harness.ROOT, "examples", "code-breaking", "code-breaking.toml")
KEY = 0x27d86dd243
PARTS = 12
KEYS = 1 << 28  # per part: some seconds
FINDER = 3


def batch_text():
    """The example's own batch, with smaller parts."""
    first = KEY - FINDER * KEYS - KEYS // 2
    changes = {'"2000000000"': '"%010x"' % first,
               '"27ffffffff"': '"%010x"' % (first + PARTS * KEYS - 1),
               '"../../build/bin/code-breaking"': '"%s"' % PROGRAM,
               '"--of", "4"': '"--of", "%d"' % PARTS, "to = 3": "to = %d" % (PARTS - 1)}
    with open(EXAMPLE) as f:
        text = f.read()
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


class CodeBreaking(TrainingCase):
    def test_found_though_owners_return(self):
        with harness.Pool() as pool:
            pool.start_server()
            clients = [pool.client(name).start() for name in ("curly", "moe")]
            pool.wait_machines(2)
            batch_file = os.path.join(pool.folder, "search.toml")
            with open(batch_file, "w") as f:
                f.write(batch_text())
            submitted = pool.sublet("submit", batch_file)
            first, batch = submitted["jobs"]["first"], submitted["batch"]
            for client in clients:
                self.wait_progress(client)
                client.owner("active")
                harness.wait_for(lambda: not client.attempts(), "the job to leave\n" +
                                 pool.all_logs())
                client.owner("away")
            target = os.path.join(pool.folder, "results")
            status, out, err = pool.run("wait", "--batch", batch, "--fetch", "--into", target)
            reason = "the batch has stopped: job %d left key.txt" % (first + FINDER)
            self.assertEqual(status, 0, "what was stopped has not failed\n" + err)
            self.assertIn(reason, err)
            with open(os.path.join(target, "key.txt")) as f:
                self.assertEqual(f.read(), "%010x\n" % KEY)
            jobs = pool.sublet("ls", "--batch", batch, "--reverse")["jobs"]
            self.assertEqual(len(jobs), PARTS)
            self.assertEqual(jobs[FINDER]["state"], "done")
            removed = [job for job in jobs if job["state"] == "removed"]
            self.assertEqual({job["reason"] for job in removed}, {reason}, jobs)
            self.assertEqual({job["state"] for job in jobs}, {"done", "removed"}, jobs)
            self.assertGreaterEqual(sum(job["evictions"] for job in jobs), 2)
            evicted = [pool.job(job["id"]) for job in jobs if job["evictions"] > 0]
            self.assertTrue(any(a["resumed_ppm"] > 0 for job in evicted
                                for a in job["attempt_list"]), evicted)
            # The other jobs have left, and the machines are free.
            harness.wait_for(lambda: not any(client.attempts() for client in clients),
                             "the removed to leave\n" + pool.all_logs())
            pool.wait_machines(2)
            follower = pool.submit("--", "true")[0]
            self.assertEqual(pool.wait_state(follower, ["done", "failed"])["state"], "done")


if __name__ == "__main__":
    unittest.main()
