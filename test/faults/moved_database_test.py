"""The database is moved away or replaced by an older one: the spool's files are kept, and the
database that knows them finds them again."""

import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

DATA = os.urandom(200_000)


class MovedDatabase(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.spool = os.path.join(self.pool.state, "spool")
        self.pool.start_server()
        self.unused = self.copy_of_database("unused")
        self.first = self.pool.submit("--", "true")[0]
        self.away = self.copy_of_database("before the job")
        with open(os.path.join(self.pool.folder, "data"), "wb") as f:
            f.write(DATA)
        self.job = self.pool.submit("--input", "data", "--output", "copy", "--", "cp", "data",
                                    "copy")[0]
        self.assertEqual(self.pool.stop_server(), 0)

    def databases(self):
        return [name for name in os.listdir(self.pool.state) if name.startswith("pool.db")]

    def move(self, source, target):
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(source):
            if name.startswith("pool.db"):
                os.rename(os.path.join(source, name), os.path.join(target, name))

    def copy_of_database(self, name):
        """Copies the database of the running server, stopped for that; returns the folder."""
        self.assertEqual(self.pool.stop_server(), 0)
        folder = os.path.join(self.pool.folder, name)
        os.makedirs(folder)
        for one in self.databases():
            shutil.copy(os.path.join(self.pool.state, one), folder)
        self.pool.start_server()
        return folder

    def contents(self):
        return [name for name in os.listdir(self.spool) if name != "orphans"]

    def job_is_done(self):
        self.pool.client("curly").start()
        self.pool.wait_state(self.job, "done")
        self.pool.sublet("fetch", self.job)
        with open(os.path.join(self.pool.folder, "copy"), "rb") as f:
            self.assertEqual(f.read(), DATA)

    def test_a_missing_database_is_not_replaced(self):
        kept = self.contents()
        self.assertEqual(len(kept), 1)
        away = os.path.join(self.pool.folder, "away")
        self.move(self.pool.state, away)
        for _ in range(2):
            self.pool.start_server(wait=False)
            self.assertEqual(self.pool.supervisor.wait(harness.PATIENCE), 1)
            said = self.pool.log("server")
            self.assertIn("/pool.db is missing, but ", said)
            self.assertIn(" has 1 file (195.3 KiB) of a pool: put its database back", said)
            self.assertEqual((self.contents(), self.databases()), (kept, []))
        self.move(away, self.pool.state)
        self.pool.start_server()
        self.job_is_done()

    def test_an_unused_database_is_refused(self):
        newest = os.path.join(self.pool.folder, "newest")
        kept = self.contents()
        self.move(self.pool.state, newest)
        self.move(self.unused, self.pool.state)
        self.pool.start_server(wait=False)
        self.assertEqual(self.pool.supervisor.wait(harness.PATIENCE), 1)
        self.assertRegex(self.pool.log("server"), "the database has never been used, but .* has 1 "
                         "file .195.3 KiB. of a pool: put its database back")
        self.assertEqual(self.contents(), kept)
        shutil.rmtree(self.unused)
        self.move(self.pool.state, self.unused)
        self.move(newest, self.pool.state)
        self.pool.start_server()
        self.job_is_done()

    def test_an_older_database_deletes_nothing(self):
        newest = os.path.join(self.pool.folder, "newest")
        self.move(self.pool.state, newest)
        self.move(self.away, self.pool.state)
        self.pool.start_server()
        self.assertEqual([j["id"] for j in self.pool.sublet("ls", "--all")["jobs"]], [self.first])
        self.assertEqual(self.contents(), [])
        self.assertIn("does not refer to 1 file (195.3 KiB) of the spool", self.pool.log("server"))
        self.assertEqual(self.pool.stop_server(), 0)
        shutil.rmtree(self.away)
        self.move(self.pool.state, self.away)
        self.move(newest, self.pool.state)
        self.pool.start_server()
        self.assertIn("1 file (195.3 KiB) came back from ", self.pool.log("server"))
        self.job_is_done()


if __name__ == "__main__":
    unittest.main()
