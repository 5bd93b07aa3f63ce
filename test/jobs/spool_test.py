"""Contents of the spool and of the workstations' caches: each content once, within its
limits, for its time; and files altered on disk are detected."""

import contextlib
import hashlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

KIB = 1 << 10
MIB = 1 << 20


def digest_of(bytes_):
    return hashlib.blake2b(bytes_, digest_size=32).hexdigest()


class SpoolCase(unittest.TestCase):
    def start(self, **options):
        self.pool = harness.Pool(**options)
        self.addCleanup(self.pool.close)
        self.pool.start_server()
        return self.pool

    def with_client(self, **options):
        client = self.pool.client("curly", **options).start()
        self.pool.wait_machines(1)
        return client

    def write(self, name, bytes_):
        with open(os.path.join(self.pool.folder, name), "wb") as f:
            f.write(bytes_)
        return digest_of(bytes_)

    def read(self, *names):
        with open(os.path.join(self.pool.folder, *names), "rb") as f:
            return f.read()

    def done(self, job):
        details = self.pool.wait_state(job, ["done", "failed"])
        self.assertEqual(details["state"], "done", details)
        return details

    def spooled(self):
        return sorted(os.listdir(os.path.join(self.pool.state, "spool")))

    def path_of_books(self):
        return os.path.join(self.pool.state, "pool.db")

    def books(self, query):
        with sqlite3.connect("file:%s?mode=ro" % self.path_of_books(), uri=True) as books:
            return books.execute(query).fetchall()

    def log(self, name):
        with open(os.path.join(self.pool.folder, name + ".log")) as log:
            return log.read()


class Cache(SpoolCase):
    def test_a_program_comes_once_and_what_is_altered_comes_again(self):
        pool = self.start()
        curly = self.with_client()
        kept = os.path.join(curly.state, "cache")
        digest = self.write("data", os.urandom(3 * MIB))

        def run():
            return self.done(pool.submit("--input", "data", "--", "b2sum", "-l", "256", "data")[0])

        def out_of(details):
            pool.sublet("fetch", str(details["id"]), "--into", "out")
            return self.read("out", "b2sum.%d.out" % details["id"]).decode().split()[0]

        self.assertEqual(out_of(run()), digest)
        self.assertEqual(os.listdir(kept), [digest])

        def modified():
            return os.stat(os.path.join(kept, digest)).st_mtime_ns

        def contents():
            with open(os.path.join(kept, digest), "rb") as f:
                return digest_of(f.read())

        before = modified()
        self.assertEqual(out_of(run()), digest)
        self.assertGreater(modified(), before)  # the cached copy was used
        # The file is altered on the workstation's disk.
        with open(os.path.join(kept, digest), "r+b") as f:
            f.seek(MIB)
            f.write(b"something else")
        self.assertEqual(out_of(run()), digest)
        self.assertIn("was altered or removed: fetching it again", self.log("client-curly"))
        self.assertEqual(contents(), digest)
        # A restarted client still has it, but asks the server anyway: a job whose input is
        # no longer in the spool does not run.
        curly.stop()
        curly.start()
        pool.wait_machines(1)
        self.assertEqual(os.listdir(kept), [digest])
        self.assertEqual(out_of(run()), digest)

    @unittest.skipUnless(os.geteuid() == 0, "needs root: slots with accounts of their own")
    def test_jobs_cannot_reach_it(self):
        pool = self.start()
        curly = self.with_client()
        self.write("data", os.urandom(MIB))
        self.done(pool.submit("--input", "data", "--", "true")[0])
        kept = os.path.join(curly.state, "cache")
        self.assertEqual(len(os.listdir(kept)), 1)
        job = pool.submit("--", "sh", "-c", "ls %s; echo x > %s/new; echo ended" % (kept, kept))[0]
        self.done(job)
        pool.sublet("fetch", str(job))
        self.assertEqual(self.read("sh.%d.out" % job), b"ended\n")
        self.assertEqual(len(os.listdir(kept)), 1)

    @unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a small disk")
    def test_it_makes_room_before_jobs_leave(self):
        pool = self.start()
        curly = pool.client("curly", extra=["--set", "disk_reserve=10 MiB",
                                            "--set", "disk_check=200 ms"])
        mount = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=711", "tmpfs", curly.state]
        if subprocess.run(mount).returncode != 0:
            self.skipTest("cannot mount a tmpfs here")
        self.addCleanup(subprocess.run, ["umount", "-l", curly.state])
        curly.start()
        pool.wait_machines(1)
        kept = os.path.join(curly.state, "cache")
        self.write("data", os.urandom(12 * MIB))
        self.done(pool.submit("--input", "data", "--", "true")[0])
        self.assertEqual(len(os.listdir(kept)), 1)
        job = pool.submit("--", "sh", "-c", "head -c 46000000 /dev/zero > big; sleep 1000")[0]
        pool.wait_state(job, "running")
        harness.wait_for(lambda: not os.listdir(kept), "the cache to make room\n" + pool.all_logs())
        details = pool.job(job)
        self.assertEqual((details["state"], details["attempts"]), ("running", 1), details)
        # An input that does not fit is a failure of the machine, not of the job.
        self.write("huge", os.urandom(70 * MIB))
        pool.sublet("rm", str(job))
        harness.wait_for(lambda: not curly.attempts(), "the job to leave")
        large = pool.submit("--input", "huge", "--", "true")[0]

        def named():
            return any("disk" in a["reason"] for a in pool.job(large)["attempt_list"]
                       if a["ended_code"])
        harness.wait_for(named, "the full disk to be named\n" + pool.all_logs())
        self.assertNotIn(pool.job_state(large), ("done", "failed", "held"))
        pool.client("moe").start()
        self.done(large)


class Kept(SpoolCase):
    def test_equal_contents_lie_there_once(self):
        pool = self.start()
        self.write("a", b"x" * MIB)
        self.write("b", b"x" * MIB)
        jobs = [pool.submit("--input", name, "--", "true")[0] for name in ("a", "b")]
        harness.wait_for(lambda: len(self.spooled()) == 1, "one of two to go")
        self.assertEqual(len({c for c, in self.books("select content from files")}), 1)
        self.assertEqual(self.books("select sum(bytes) from spool_use"), [(2 * MIB,)])
        pool.sublet("rm", str(jobs[0]))
        harness.wait_for(lambda: len(self.books("select * from files")) == 1, "the first to go")
        self.assertEqual(len(self.spooled()), 1)
        pool.kill_server()
        pool.wait_serving()
        self.assertEqual(len(self.spooled()), 1)
        self.with_client()
        self.done(jobs[1])
        harness.wait_for(lambda: self.spooled() == [], "the last to go")
        self.assertEqual(self.books("select sum(bytes) from spool_use"), [(0,)])

    def test_a_quota_is_named_before_anything_is_sent(self):
        pool = self.start(server_sets=["spool.quota=1 MiB"])
        self.write("a", b"a" * 700_000)
        self.write("b", b"b" * 700_000)
        first = pool.submit("--input", "a", "--", "true")[0]
        status, out, err = pool.run("submit", "--input", "b", "--", "true")
        self.assertEqual(status, 7, err)
        self.assertIn("`b` has 683.6 KiB", err)
        self.assertIn("683.6 KiB of the 1 MiB allowed", err)
        self.assertIn("sublet fetch --discard", err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertEqual(len(pool.sublet("ls", "--all")["jobs"]), 1)
        pool.sublet("rm", str(first))
        harness.wait_for(lambda: pool.run("submit", "--input", "b", "--", "true")[0] == 0,
                         "room\n" + pool.log("server"))

    def test_outputs_go_after_their_time_and_when_they_are_discarded(self):
        pool = self.start(server_sets=["spool.keep_outputs=3 s"])
        self.with_client()
        job = pool.submit("--output", "result", "--", "sh", "-c", "echo 42 > result")[0]
        self.done(job)
        harness.wait_for(lambda: pool.job(job)["outputs_removed_us"], "the outputs to go")
        status, out, err = pool.run("fetch", str(job))
        self.assertEqual(status, 4, err)
        self.assertIn("no longer keeps the outputs of 1 job: job %d" % job, err)
        self.assertIn("removed from the server", pool.run("show", str(job))[1])
        pool.kill_server()  # the removal is recorded
        pool.wait_serving()
        self.assertTrue(pool.job(job)["outputs_removed_us"])

    def test_discard(self):
        pool = self.start()
        self.with_client()
        job = pool.submit("--output", "result", "--", "sh", "-c", "echo 42 > result")[0]
        self.done(job)
        pool.sublet("fetch", str(job), "--discard")
        self.assertEqual(self.read("result"), b"42\n")
        self.assertTrue(pool.job(job)["outputs_removed_us"])
        self.assertEqual(pool.run("fetch", str(job))[0], 4)

    def alter(self, name, at=None):
        with open(os.path.join(self.pool.state, "spool", name), "r+b") as f:
            f.seek(at if at is not None else os.fstat(f.fileno()).st_size // 2)
            f.write(b"something else")

    def test_a_damaged_input_holds_its_job(self):
        pool = self.start()
        self.write("data", os.urandom(3 * MIB))
        job = pool.submit("--input", "data", "--", "true")[0]
        self.alter(self.spooled()[0])
        self.with_client()
        details = pool.wait_state(job, ["held", "done", "failed"])
        self.assertEqual(details["state"], "held", details)
        self.assertIn("its input `data` is damaged in the server's spool", details["reason"])
        # When submitted again, it is stored again.
        self.done(pool.submit("--input", "data", "--", "true")[0])

    def test_a_damaged_output_is_named(self):
        pool = self.start()
        self.with_client()
        job = pool.submit("--output", "big", "--", "sh", "-c", "head -c 3000000 /dev/zero > big")[0]
        self.done(job)
        self.alter(self.spooled()[0])
        status, out, err = pool.run("fetch", str(job), "--into", "home")
        self.assertEqual(status, 4, err)
        self.assertIn("`big` is damaged or missing in the server's spool", err)
        self.assertEqual(os.listdir(os.path.join(pool.folder, "home")), [])

    @unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a small disk")
    def test_a_full_disk_on_the_server(self):
        pool = harness.Pool(server_sets=["server.reserve=1 MiB"])
        self.pool = pool
        os.makedirs(pool.state)
        mount = ["mount", "-t", "tmpfs", "-o", "size=24m,mode=755", "tmpfs", pool.state]
        if subprocess.run(mount).returncode != 0:
            self.skipTest("cannot mount a tmpfs here")
        self.addCleanup(subprocess.run, ["umount", "-l", pool.state])
        self.addCleanup(pool.close)
        pool.start_server()
        self.with_client()
        self.write("data", os.urandom(12 * MIB))
        filler = os.path.join(pool.state, "filler")
        with open(filler, "wb") as f:
            f.write(b"x" * 14 * MIB)
        sending = subprocess.Popen([os.path.join(harness.BIN, "sublet"), "submit", "--input",
                                    "data", "--", "cp", "data", "copy"], cwd=pool.folder,
                                   env=pool.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        spool = os.path.join(pool.state, "spool")

        def stuck():
            return (os.listdir(spool) and
                    os.statvfs(pool.state).f_bavail * os.statvfs(pool.state).f_frsize < 64 * KIB)
        harness.wait_for(stuck, "the disk to be full\n" + pool.log("server"))
        self.assertIsNone(sending.poll())
        os.unlink(filler)  # the transfer waits, and resumes
        said = sending.communicate(timeout=harness.PATIENCE)[0]
        # New jobs are refused until the server has its reserve again.
        self.assertTrue(sending.returncode == 0 or
                        (sending.returncode == 8 and "disk" in said), said)
        self.assertEqual(said.count("\n"), 1, said)

        def submitted():
            return pool.run("submit", "--input", "data", "--", "cp", "data", "copy")[0] == 0
        harness.wait_for(lambda: sending.returncode == 0 or submitted(), "room")
        self.done(pool.sublet("ls", "--all")["jobs"][0]["id"])


class Follow(SpoolCase):
    def following(self, *options):
        log = open(os.path.join(self.pool.folder, "fetch.log"), "a")
        process = subprocess.Popen([os.path.join(harness.BIN, "sublet"), "fetch", "--follow",
                                    *options], cwd="/", env=self.pool.environment(),
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def submit(self, folder, script, *options):
        os.makedirs(os.path.join(self.pool.folder, folder), exist_ok=True)
        return self.pool.submit(*options, "--output", "result", "--", "sh", "-c", script,
                                cwd=os.path.join(self.pool.folder, folder))[0]

    def wait_file(self, *names):
        path = os.path.join(self.pool.folder, *names)
        harness.wait_for(lambda: os.path.exists(path),
                         path + "\n" + self.pool.log("fetch") + self.pool.all_logs())
        return self.read(*names)

    def wait_said(self, text, times=1):
        harness.wait_for(lambda: self.log("fetch").count(text) >= times,
                         text + "\n" + self.pool.log("fetch") + self.pool.all_logs())

    def test_outputs_come_home_once(self):
        pool = self.start()
        self.with_client()
        process = self.following()
        self.wait_said("Ctrl-C")
        first = self.submit("one", "echo 1 > result")
        self.assertEqual(self.wait_file("one", "result"), b"1\n")
        second = self.submit("two", "echo 2 > result; echo words")
        self.assertEqual(self.wait_file("two", "result"), b"2\n")
        self.assertEqual(self.wait_file("two", "sh.%d.out" % second), b"words\n")
        # Existing files are not replaced.
        third = self.submit("one", "echo 3 > result")
        self.assertEqual(self.wait_file("one", str(third), "result"), b"3\n")
        self.assertEqual(self.read("one", "result"), b"1\n")
        # A second concurrent one is refused.
        status, out, err = pool.run("fetch", "--follow")
        self.assertIn(str(process.pid), err)
        self.assertNotEqual(status, 0)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(harness.PATIENCE), 130)
        # Outputs of jobs that ended meanwhile are fetched at the next start, earlier ones are
        # not, even if the server was restarted.
        away = self.submit("two", "echo 4 > result")
        self.done(away)
        os.unlink(os.path.join(pool.folder, "one", "result"))
        pool.kill_server()
        pool.wait_serving()
        self.following()
        self.assertEqual(self.wait_file("two", str(away), "result"), b"4\n")
        last = self.submit("two", "echo 5 > result")
        self.assertEqual(self.wait_file("two", str(last), "result"), b"5\n")
        self.assertFalse(os.path.exists(os.path.join(pool.folder, "one", "result")))
        self.assertEqual(self.log("fetch").count("job %d " % first), 1)
        self.assertEqual(self.read("two", "result"), b"2\n")

    def test_after_a_gap_in_the_history_each_comes_once(self):
        pool = self.start()
        self.with_client()
        process = self.following()
        self.wait_said("Ctrl-C")
        self.submit("one", "echo 1 > result")
        self.assertEqual(self.wait_file("one", "result"), b"1\n")
        process.kill()
        process.wait()
        forgotten = self.submit("two", "echo 2 > result")
        self.done(forgotten)
        known = self.books("select max(number) from changes")[0][0]
        kept = self.submit("three", "echo 3 > result")
        self.done(kept)
        pool.stop_server()
        with contextlib.closing(sqlite3.connect(self.path_of_books())) as books, books:
            books.execute("delete from changes where number <= ?", (known,))
        pool.start_server()
        self.following()
        self.assertEqual(self.wait_file("two", "result"), b"2\n")
        self.assertEqual(self.wait_file("three", "result"), b"3\n")
        # A later job's output shows that the change of this one was handled, too.
        last = self.submit("four", "echo 4 > result")
        self.assertEqual(self.wait_file("four", "result"), b"4\n")
        self.wait_said("job %d " % last)
        for job in (forgotten, kept):
            self.assertEqual(self.log("fetch").count("job %d " % job), 1, self.log("fetch"))
        self.assertFalse(os.path.exists(os.path.join(pool.folder, "three", str(kept))))

    def test_an_empty_history_is_not_asked_all_the_time(self):
        pool = self.start()
        process = self.following()
        self.wait_said("Ctrl-C")

        def waits():
            with open("/proc/%d/status" % process.pid) as f:
                return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)[1])
        begun, before = time.monotonic(), waits()
        # Each call waits for its answer; `fetch --follow` may make five calls per second.
        harness.wait_for(lambda: time.monotonic() > begun + 2, "some time to pass")
        self.assertLess(waits() - before, 50 * (time.monotonic() - begun), self.log("fetch"))
        # The very first change is handled.
        self.with_client()
        job = self.submit("one", "echo 1 > result")
        self.assertEqual(self.wait_file("one", "result"), b"1\n")
        self.wait_said("job %d " % job)

    def test_into_one_folder_and_then_discarded(self):
        pool = self.start()
        self.with_client()
        self.following("--into", os.path.join(pool.folder, "home"), "--by-job", "--discard")
        self.wait_said("Ctrl-C")
        job = self.submit("one", "echo 1 > result")
        self.assertEqual(self.wait_file("home", str(job), "result"), b"1\n")
        harness.wait_for(lambda: pool.job(job)["outputs_removed_us"], "the outputs to go")
        failed = self.submit("one", "echo 1 > result; exit 3")
        self.wait_said("job %d " % failed)

    def test_a_folder_that_cannot_be_written_is_tried_again(self):
        pool = self.start()
        self.with_client()
        self.following()
        self.wait_said("Ctrl-C")
        job = self.submit("one", "while [ ! -e %s/go ]; do sleep 0.1; done; echo 1 > result" %
                          pool.folder)
        pool.wait_state(job, "running")
        os.rename(os.path.join(pool.folder, "one"), os.path.join(pool.folder, "moved"))
        with open(os.path.join(pool.folder, "one"), "w"):
            pass  # a file in place of the folder
        open(os.path.join(pool.folder, "go"), "w").close()
        self.wait_said("(will retry)")
        other = self.submit("two", "echo 2 > result")
        self.assertEqual(self.wait_file("two", "result"), b"2\n")
        os.unlink(os.path.join(pool.folder, "one"))
        self.assertEqual(self.wait_file("one", "result"), b"1\n")
        self.assertLess(job, other)


if __name__ == "__main__":
    unittest.main()
