"""The history of events is moved to files, and can be replayed, whenever the server dies."""

import os
import re
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness


class Events(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.pool.__enter__()
        self.addCleanup(self.pool.close)

    def history(self):
        folder = os.path.join(self.pool.state, "history")
        names = os.listdir(folder) if os.path.exists(folder) else []
        return sorted(os.path.join(folder, n) for n in names
                      if n.startswith("events-") and n.endswith(".db"))

    def command(self, name):
        done = subprocess.run([os.path.join(harness.BIN, "sublet-server"), "--state",
                               self.pool.state, name], capture_output=True, text=True,
                              timeout=harness.PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def replay(self):
        return self.command("replay")

    @staticmethod
    def in_file(path):
        db = sqlite3.connect("file:%s?mode=ro" % path, uri=True, timeout=10)
        try:
            return db.execute("select count(*) from events").fetchone()[0]
        finally:
            db.close()

    def work(self, count=20):
        """Jobs that end in several ways, some of which wait for others; an owner who comes and
        goes."""
        curly = self.pool.clients["curly"]
        batch = os.path.join(self.pool.folder, "work.toml")
        with open(batch, "w") as f:
            f.write('[[job]]\nprogram = "sh"\narguments = ["-c", "exit $(({index} %% 2))"]\n'
                    'count = %d\n[[job]]\nname = "never"\nprogram = "true"\n'
                    'after = ["sh[%d]"]\n[[job]]\nname = "late"\nprogram = "true"\n'
                    'after_start = ["sh"]\nafter_any = ["never"]\n' % (count, count - 1))
        *jobs, never, late = self.pool.submit(batch)
        removed = self.pool.submit("--", "sleep", "1000")[0]
        for job in jobs:
            self.pool.wait_state(job, ["done", "failed"])
        self.pool.wait_state(removed, "running")
        curly.owner("active")
        self.pool.wait_state(removed, "waiting")
        self.pool.sublet("rm", removed)
        curly.owner("away")
        self.pool.wait_machines(1)
        # One that waits remains for the next file.
        self.assertEqual([self.pool.job_state(job) for job in (never, late)], ["held", "waiting"])

    def test_replay(self):
        self.pool.start_server()
        self.pool.client("curly").start()
        self.pool.wait_machines(1)
        harness.wait_for(self.history, "a file of events\n" + self.pool.all_logs())
        self.work()
        self.assertEqual(self.pool.stop_server(), 0)
        # The file is old now: the next start begins another one.
        first, = self.history()
        old = os.path.join(os.path.dirname(first), "events-2020-01-01T00-00-00.000000Z.db")
        os.rename(first, old)
        self.pool.start_server()
        harness.wait_for(lambda: len(self.history()) == 2, "another file")
        self.pool.wait_machines(1)
        self.work(4)
        status, said = self.replay()
        self.assertEqual(status, 0, said)
        lines = said.splitlines()
        self.assertEqual(len(lines), 3, said)
        events = int(re.match(re.escape(old) + r": (\d+) events from \S+ to \S+; they lead to the "
                              "next file$", lines[0])[1])
        self.assertGreater(events, 50)
        self.assertRegex(lines[1], r": \d+ events? from \S+ to \S+$")
        newer = int(re.match(r"(\d+) newer events, still in the database, were not replayed$",
                             lines[2])[1])
        self.assertGreater(newer, 8)  # of four jobs
        with sqlite3.connect(old) as db:
            db.execute("update jobs set state = 5")
            db.execute("delete from events where number = (select max(number) from events)")
            db.execute("update events set kind = 14 where number % 7 = 3")
        status, said = self.replay()
        self.assertEqual(status, 1, said)
        self.assertRegex(said, "the rest cannot be replayed|do not lead to the next file")

    def test_the_server_dies_while_it_begins_a_file(self):
        self.pool.start_server(sets=["debug.crash_at=anchored:1"])
        self.pool.client("curly").start()
        harness.wait_for(self.history, "a file of events\n" + self.pool.all_logs())
        self.pool.wait_machines(1)
        self.work()
        status, said = self.replay()
        self.assertEqual(status, 0, said)

    def test_a_damaged_file_is_named(self):
        self.pool.start_server()
        harness.wait_for(self.history, "a file of events\n" + self.pool.all_logs())
        self.assertEqual(self.command("check")[0], 0)
        self.assertEqual(self.pool.stop_server(), 0)
        path, = self.history()
        with open(path, "r+b") as f:
            f.seek(4096)
            f.write(bytes(4096 * 20))
        status, said = self.command("check")
        self.assertEqual(status, 1, said)
        self.assertIn(path, said)
        self.assertIn("restore these files from a backup", said)
        status, said = self.replay()
        self.assertEqual(status, 1, said)
        self.assertIn(path, said)
        # The server needs nothing of it, and history goes on.
        self.pool.start_server()
        self.pool.client("curly").start()
        self.pool.wait_state(self.pool.submit("--", "true")[0], "done")
        harness.wait_for(lambda: len(self.history()) == 2, "another file")

    def test_nothing_to_replay(self):
        self.pool.start_server()
        harness.wait_for(self.history, "a file of events\n" + self.pool.all_logs())
        self.pool.stop_server()
        for path in self.history():
            os.unlink(path)
        status, said = self.replay()
        self.assertEqual(status, 1)
        self.assertRegex(said, "there are no files of events in .*/history")


if __name__ == "__main__":
    unittest.main()
