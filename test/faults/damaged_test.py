"""A checkpoint is damaged in the server's spool: only that generation is lost. The job
resumes from the previous one, its attempt shows that, and its result is the same."""

import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from training import TrainingCase


class Damaged(TrainingCase):
    def generations(self, pool, job):
        with sqlite3.connect("file:%s?mode=ro" % self.books(pool), uri=True) as books:
            return [g for g, in books.execute(
                "select generation from files where job = ? and kind = 2 order by generation",
                (job,))]

    @staticmethod
    def books(pool):
        return os.path.join(pool.folder, "server", "pool.db")

    def spoil(self, pool, job, generations):
        with sqlite3.connect(self.books(pool), timeout=30) as books:
            books.text_factory = bytes
            for generation in generations:
                where = "where job = %d and kind = 2 and generation = %d" % (job, generation)
                body = bytearray(books.execute("select body from files " + where).fetchone()[0])
                body[len(body) // 2] ^= 1
                books.execute("update files set body = cast(? as text) " + where, (bytes(body),))

    def evict(self, pool, client, job):
        self.wait_progress(client)
        client.owner("active")
        harness.wait_for(lambda: not client.attempts(), "the job to leave\n" + pool.all_logs())

    def run_with_damage(self, newest_only):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            job = self.submit(pool)
            self.evict(pool, curly, job)
            first = self.generations(pool, job)[-1]
            curly.owner("away")
            harness.wait_for(lambda: self.generations(pool, job)[-1] > first or
                             self.evict(pool, curly, job), "a second generation")
            held = self.generations(pool, job)
            self.assertGreaterEqual(len(held), 2)
            self.spoil(pool, job, held[-1:] if newest_only else held)
            curly.owner("away")
            details = pool.wait_state(job, ["done", "failed"])
            self.assertEqual(details["state"], "done", details)
            with open(os.path.join(pool.folder, "server.log")) as log:
                text = log.read()
            self.assertIn("checkpoint generation %d is damaged in the spool; resuming from "
                          "generation %d" % (held[-1], held[-2] if newest_only else 0), text)
            self.assertEqual(details["attempt_list"][-1]["ended"], "done")
            self.check_result(pool, job)

    def test_newest(self):
        self.run_with_damage(True)

    def test_all(self):
        self.run_with_damage(False)


if __name__ == "__main__":
    unittest.main()
