"""Reports of a real pool: they add up, users see only their own, they contain forecasts,
and old usage is moved out of the database exactly once."""

import contextlib
import csv
import glob
import io
import json
import os
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

FIGURES = ["jobs_done", "attempts", "evictions", "cpu_us", "wall_us", "kept_us", "lost_us",
           "charged_us", "waited_us"]
BURN = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"


def sums(report):
    return {name: sum(line[name] for line in report["usage"]) for name in FIGURES}


class Report(unittest.TestCase):
    def pool(self, *sets):
        pool = harness.Pool(server_sets=sets)
        self.addCleanup(pool.close)
        pool.start_server()
        return pool

    def burn(self, pool, count):
        jobs = [pool.submit("--", "sh", "-c", BURN)[0] for _ in range(count)]
        for job in jobs:
            self.assertEqual(pool.wait_state(job, ["done", "failed"])["state"], "done")
        return jobs

    def evict_one(self, pool, machine):
        job = pool.submit("--", "sleep", "1000")[0]
        pool.wait_state(job, "running")
        machine.owner("active")
        harness.wait_for(lambda: pool.job(job)["evictions"] == 1, "the eviction\n" + pool.all_logs())
        pool.sublet("rm", job)
        machine.owner("away")
        pool.wait_machines(1)
        return job

    def test_adds_up(self):
        pool = self.pool()
        curly = pool.client("curly").start()
        pool.wait_machines(1)
        jobs = self.burn(pool, 3)
        evicted = self.evict_one(pool, curly)
        attempts = [a for job in jobs + [evicted] for a in pool.job(job)["attempt_list"]]
        whole = sums(pool.sublet("report", "users"))
        self.assertEqual((whole["jobs_done"], whole["evictions"]), (3, 1))
        self.assertEqual(whole["attempts"], len(attempts))
        self.assertEqual(whole["kept_us"] + whole["lost_us"], whole["cpu_us"])
        self.assertGreater(whole["cpu_us"], 0)
        self.assertGreater(whole["wall_us"], 0)
        # `show` reports milliseconds.
        told = sum(a["cpu_ms"] for a in attempts)
        self.assertAlmostEqual(told, whole["cpu_us"] / 1000, delta=len(attempts))
        for words in (["machines"], ["jobs"], ["pool"], ["--by", "week"], ["pool", "--by", "day"],
                      ["machines", "--by", "batch", "--by", "user"], ["--since", "1 h"]):
            self.assertEqual(sums(pool.sublet("report", *words)), whole, words)
        lines = pool.sublet("report", "jobs")["usage"]
        self.assertEqual([int(l["group"]["job"]) for l in lines], sorted(jobs + [evicted]))
        machines = pool.sublet("report", "machines")
        self.assertEqual(machines["usage"][0]["group"], {"machine": "curly"})
        self.assertNotIn("standings", machines)
        for words in (["--until", "1 d"], ["--since", "2100-01-01"],
                      ["--since", "2000-01-01", "--until", "2000-01-02 12:00"]):
            self.assertEqual(pool.sublet("report", *words)["usage"], [], words)
        standing, = pool.sublet("report")["standings"]
        self.assertRegex(standing["reason"],
                         r"^.* CPU .* in the last day at a share of 1 of 1: nobody waits$")
        self.check_prints(pool)
        self.check_leverage(pool)

    def check_prints(self, pool):
        as_json = pool.sublet("report", "machines", "--by", "user")["usage"]
        status, out, err = pool.run("report", "machines", "--by", "user", "--csv")
        self.assertEqual((status, err), (0, ""))
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(len(rows), len(as_json))
        for row, line in zip(rows, as_json):
            self.assertEqual({k: row[k] for k in line["group"]}, line["group"])
            self.assertEqual({k: int(row[k]) for k in FIGURES}, {k: line[k] for k in FIGURES})
        user = list(csv.DictReader(io.StringIO(pool.run("report", "--csv")[1])))[0]
        self.assertIn("at a share of", user["reason"])
        for words in ([], ["users"], ["machines"], ["jobs"], ["pool"], ["pool", "--by", "day"]):
            status, out, err = pool.run("report", *words)
            self.assertEqual((status, err), (0, ""), words)
            self.assertIn("KEPT", out)
        self.assertEqual(pool.run("report", "--csv", "--json")[0], 2)

    def check_leverage(self, pool):
        def line():
            first, = pool.sublet("report", "pool")["usage"]
            return first if first.get("local_us", 0) > 0 else None
        told = harness.wait_for(line, "the server's own CPU time")
        self.assertAlmostEqual(told["leverage"], told["kept_us"] / told["local_us"])
        # Once recorded, not less than the kernel's earlier value.
        spent = harness.cpu_ticks(pool.server_pid()) * 10_000
        harness.wait_for(lambda: line()["local_us"] >= spent, "all that the server had spent")

    def test_forecast(self):
        pool = self.pool()
        pool.client("curly").start()
        pool.wait_machines(1)
        job = pool.submit("--", "sleep", "1000")[0]
        pool.wait_state(job, "running")
        waiting = pool.submit("--", "sleep", "1000")[0]
        detail = pool.job(waiting)
        self.assertTrue(detail["forecast"].startswith("too little data yet: 0 slots"), detail)
        self.assertEqual(detail["starts_at_us"], 0)
        pool.sublet("rm", "%d-%d" % (job, waiting))
        self.burn(pool, 3)
        job = pool.submit("--", "sleep", "1000")[0]
        pool.wait_state(job, "running")
        waiting = [pool.submit("--", "sleep", "1000")[0] for _ in range(3)][-1]
        asked = time.time()
        detail = pool.job(waiting)
        self.assertRegex(detail["forecast"], r"^in about .*: 2 jobs are ahead, and \d slots became "
                                             r"free in the last .* on the machines that fit$")
        self.assertGreater(detail["starts_at_us"], asked * 1e6)
        self.assertIn("starts     in about", pool.run("show", waiting)[1])
        detail = pool.job(job)
        self.assertEqual((detail["forecast"], detail["starts_at_us"]), ("", 0))

    def test_old_uses_leave_once(self):
        pool = self.pool()
        pool.client("curly").start()
        pool.wait_machines(1)
        jobs = self.burn(pool, 3)
        pool.stop_server()
        with contextlib.closing(sqlite3.connect(os.path.join(pool.state, "pool.db"))) as db:
            db.execute("update uses set finished = finished - 400 * 86400000000")
            db.commit()
        pool.start_server(sets=["debug.crash_at=history:1"])
        files = os.path.join(pool.state, "history", "*.jsonl")
        harness.wait_for(lambda: "died of signal 9" in pool.log("server"), "the crash")
        self.assertTrue(glob.glob(files), "written before it is deleted")
        harness.wait_for(lambda: pool.about() and not pool.sublet("report", "jobs")["usage"],
                         "the old uses to go\n" + pool.log("server"))
        uses = []
        for name in glob.glob(files):
            with open(name) as f:
                uses += [line for line in map(json.loads, f) if line["kind"] == "use"]
        self.assertEqual(sorted(use["job"] for use in uses), jobs)
        self.assertEqual({use["machine"] for use in uses}, {"curly"})
        self.assertTrue(all(u["kept_us"] + u["lost_us"] == u["cpu_us"] for u in uses))

    @unittest.skipUnless(os.geteuid() == 0, "becomes another user")
    def test_privacy(self):
        pool = self.pool()
        pool.client("curly").start()
        pool.wait_machines(1)
        self.burn(pool, 1)
        program = pool.public(os.path.join(harness.BIN, "sublet"))

        def nobody(*words):
            done = subprocess.run([program, "report"] + list(words), user=65534, group=65534,
                                  cwd="/", extra_groups=[], env=pool.environment(), text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=harness.PATIENCE)
            return done.returncode, done.stdout, done.stderr
        for what in ("users", "machines", "jobs", "pool"):
            status, out, err = nobody(what, "--json")
            self.assertEqual((status, json.loads(out)["usage"]), (0, []), err)
        standing, = json.loads(nobody("--json")[1])["standings"]
        self.assertEqual(standing["user"], "root")
        self.assertNotIn("cpu_day_us", standing)
        self.assertEqual(standing["reason"], "a share of 1 of 1: nobody waits")
        status, _, err = nobody("--user", "root")
        self.assertEqual(status, 5)
        self.assertIn("the usage of root is for administrators", err)


if __name__ == "__main__":
    unittest.main()
