"""Finished jobs move from the database to files; every command finds them as before, even if
the server dies while it moves them."""

import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

COUNT = 4


class History(unittest.TestCase):
    def finished(self, *sets):
        """A pool in which some jobs have finished, and their outputs have been fetched."""
        pool = harness.Pool(server_sets=sets)
        self.addCleanup(pool.close)
        pool.start_server()
        pool.client("moe", slots=2).start()
        pool.wait_machines(1)
        jobs = [pool.submit("--name", "number-%d" % i, "--", "true")[0] for i in range(COUNT)]
        for job in jobs:
            pool.wait_state(job, "done")
        # The newest job stays in the database: one more, whose output nobody fetches.
        last = pool.submit("--name", "last", "--", "echo", "kept")[0]
        pool.wait_state(last, "done")
        return pool, jobs, last

    @staticmethod
    def in_database(pool):
        db = sqlite3.connect(os.path.join(pool.state, "pool.db"), timeout=10)
        try:
            return [row[0] for row in db.execute("select id from jobs order by id")]
        finally:
            db.close()

    @staticmethod
    def said(pool, jobs):
        """What the commands say of the jobs."""
        shown = [pool.sublet("show", job) for job in jobs]
        for details in shown:
            details.pop("now_us", None)
        return {
            "show": shown,
            "ls": pool.sublet("ls", "--all", "--each-job"),
            "page": pool.sublet("ls", "--all", "--each-job", "--limit", 2),
            "report": pool.sublet("report")["usage"],
        }

    def restart(self, pool, *sets):
        pool.stop_server()
        pool.start_server(sets=sets)
        pool.wait_machines(1)

    def test_commands_find_them_after_the_move(self):
        pool, jobs, last = self.finished("history.keep_jobs=0", "spool.keep_outputs=1 s")
        before = self.said(pool, jobs)
        self.restart(pool, "history.keep_jobs=1 s")
        harness.wait_for(lambda: self.in_database(pool) == [last], "the jobs to move")
        files = os.listdir(os.path.join(pool.state, "history"))
        self.assertTrue(any(name.startswith("jobs-20") for name in files), files)
        self.assertEqual(self.said(pool, jobs), before)
        self.restart(pool)
        self.assertEqual(self.said(pool, jobs), before)
        self.assertEqual(pool.submit("--", "true"), [last + 1])

    def test_server_dies_before_the_rows_are_deleted(self):
        pool, jobs, last = self.finished("history.keep_jobs=0", "spool.keep_outputs=1 s")
        before = self.said(pool, jobs)
        self.restart(pool, "history.keep_jobs=1 s", "debug.crash_at=moved:1")
        harness.wait_for(lambda: self.in_database(pool) == [last], "the jobs to move")
        self.assertEqual(pool.log("server").count("died of signal 9"), 1, "the crash was reached")
        self.assertEqual(self.said(pool, jobs), before)


if __name__ == "__main__":
    unittest.main()
