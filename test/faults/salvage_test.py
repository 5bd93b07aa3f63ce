"""Pages of the pool's database are overwritten, as by a failing disk: `sublet-server check` names
the table, and `salvage` makes a database with which the pool goes on."""

import os
import shutil
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

PAGE = 4096


class Salvage(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.addCleanup(self.pool.close)
        self.database = os.path.join(self.pool.state, "pool.db")
        self.pool.start_server()
        with open(os.path.join(self.pool.folder, "data"), "wb") as f:
            f.write(os.urandom(100_000))
        moe = self.pool.client("moe").start()
        self.pool.wait_machines(1)
        self.done = self.pool.submit("--input", "data", "--output", "copy", "--", "cp", "data",
                                     "copy")[0]
        self.pool.wait_state(self.done, "done")
        moe.owner("active")
        self.waiting = self.pool.submit("--input", "data", "--output", "copy", "--", "cp", "data",
                                        "copy")[0]
        self.moe = moe

    def damage(self, table):
        """Overwrites the last leaf of the table, perhaps its only page."""
        with sqlite3.connect(self.database) as database:
            database.execute("pragma journal_mode = delete")
            page, = database.execute(
                "select pageno from dbstat where name = ? and pagetype = 'leaf' "
                "order by path desc limit 1", (table,)).fetchone()
        with open(self.database, "r+b") as f:
            f.seek((page - 1) * PAGE)
            f.write(b"\xa5" * PAGE)

    def command(self, *words):
        done = subprocess.run([os.path.join(harness.BIN, "sublet-server"), "--state",
                               self.pool.state, *words], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=harness.PATIENCE)
        return done.returncode, done.stdout

    def copied(self, job, folder):
        self.pool.wait_state(job, "done")
        self.pool.sublet("fetch", job, "--into", os.path.join(self.pool.folder, folder))
        with open(os.path.join(self.pool.folder, "data"), "rb") as data, \
                open(os.path.join(self.pool.folder, folder, "copy"), "rb") as copy:
            return data.read() == copy.read()

    def test_a_pool_goes_on(self):
        self.assertEqual(self.command("check")[0], 0)
        self.assertEqual(self.pool.stop_server(), 0)
        self.damage("events")
        status, said = self.command("check")
        self.assertEqual(status, 1, said)
        self.assertIn("table events is damaged: ", said)
        self.assertIn("run `sublet-server salvage`", said)
        status, said = self.command("salvage")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, "table events: [0-9]+ rows could be read")
        self.assertIn("all other tables are complete", said)
        self.assertEqual(self.command("check")[0], 0)
        self.assertEqual(self.command("salvage")[1], self.database +
                         ": nothing is damaged; nothing was changed\n")
        self.pool.start_server()
        self.moe.owner("away")
        self.assertTrue(self.copied(self.done, "first"))
        self.assertTrue(self.copied(self.waiting, "second"))
        self.assertTrue(self.copied(self.pool.submit("--input", "data", "--output", "copy", "--",
                                                     "cp", "data", "copy")[0], "third"))

    def test_a_running_server_is_not_disturbed(self):
        status, said = self.command("salvage")
        self.assertEqual(status, 1, said)
        self.assertEqual(self.command("check")[0], 0)

    def test_a_file_that_was_cut_off(self):
        # Enough of it is left for the description of the tables, which are made first.
        self.pool.submit("--env", "LONG=" + 100_000 * "x", "--", "true")
        self.assertEqual(self.pool.stop_server(), 0)
        self.damage("events")
        os.truncate(self.database, os.path.getsize(self.database) * 3 // 4 // PAGE * PAGE)
        status, said = self.command("check")
        self.assertEqual(status, 1, said)
        status, said = self.command("salvage")
        self.assertEqual(status, 0, said)
        self.assertEqual(self.command("check")[0], 0)
        self.pool.start_server()
        self.moe.owner("away")
        job = self.pool.submit("--input", "data", "--output", "copy", "--", "cp", "data",
                               "copy")[0]
        self.assertGreater(job, self.waiting)
        self.assertTrue(self.copied(job, "after"))

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_root_follows_no_links_of_the_folders_owner(self):
        """Root acts as the account that the folder belongs to."""
        self.assertEqual(self.pool.stop_server(), 0)
        self.damage("events")
        own = os.path.join(self.pool.folder, "roots")
        os.mkdir(own, 0o700)
        secret = os.path.join(own, "pool.db")
        os.rename(self.database, secret)
        with open(secret, "rb") as f:
            before = f.read()
        os.symlink(secret, self.database)
        for folder, _, names in os.walk(self.pool.state):
            for name in [folder] + [os.path.join(folder, name) for name in names]:
                os.lchown(name, 200001, 200001)
        for word in ("check", "salvage"):
            status, said = self.command(word)
            self.assertEqual((status, said), (
                1, "sublet-server: cannot open %s: Permission denied (check its owner and "
                "permissions)\n" % self.database))
        os.unlink(self.database)
        shutil.copy(secret, self.database)
        os.chown(self.database, 200001, 200001)
        self.assertEqual(self.command("salvage")[0], 0)
        for name in os.listdir(self.pool.state):
            self.assertEqual(os.lstat(os.path.join(self.pool.state, name)).st_uid, 200001, name)
        with open(secret, "rb") as f:
            self.assertEqual(f.read(), before)

    def test_the_server_goes_on_without_history(self):
        """Also if the damage is found while it runs."""
        self.assertEqual(self.pool.stop_server(), 0)
        for table in ("events", "requests", "changes"):
            self.damage(table)
        self.pool.start_server()
        self.moe.owner("away")
        self.assertTrue(self.copied(self.waiting, "first"))
        self.assertTrue(self.copied(self.pool.submit("--input", "data", "--output", "copy", "--",
                                                     "cp", "data", "copy")[0], "second"))
        log = self.pool.log("server")
        status, said = self.command("check")
        self.assertEqual(status, 1, said)
        for table in ("events", "requests", "changes"):
            self.assertIn("table %s of the database is damaged: it was set aside as %s_damaged_1" %
                          (table, table), log)
            self.assertIn("table %s_damaged_1 is damaged: the server has set it aside\n" % table,
                          said)
        self.assertEqual(self.pool.stop_server(), 0)
        self.assertEqual(self.command("salvage")[0], 0)
        self.assertEqual(self.command("check")[0], 0)

    def test_damage_in_the_spool_is_named(self):
        spool = os.path.join(self.pool.state, "spool")
        self.assertEqual(self.command("check", "--contents")[0], 0)
        with sqlite3.connect(self.database) as database:
            number, = database.execute("select id from contents").fetchone()
        content = os.path.join(spool, str(number))
        with open(content, "r+b") as f:
            first = f.read(1)
            f.seek(0)
            f.write(bytes([first[0] ^ 1]))
        self.assertEqual(self.command("check")[0], 0)
        status, said = self.command("check", "--contents")
        self.assertEqual(status, 1, said)
        self.assertIn(content + " differs from what was stored", said)
        os.truncate(content, 5)
        status, said = self.command("check")
        self.assertEqual(status, 1, said)
        self.assertIn(content + " has 5 bytes instead of 100000", said)
        os.rename(content, os.path.join(spool, "999"))
        status, said = self.command("check")
        self.assertEqual(status, 1, said)
        self.assertIn(content + " is missing", said)
        self.assertIn("spool/999 belongs to nothing in the database", said)

    def test_the_server_says_what_to_do(self):
        self.assertEqual(self.pool.stop_server(), 0)
        self.damage("jobs")
        self.pool.start_server(wait=False)
        harness.wait_for(lambda: "`sublet-server check`" in self.pool.log("server"),
                         "the server's advice")


if __name__ == "__main__":
    unittest.main()
