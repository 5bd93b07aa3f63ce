"""The main scenario: a job runs on an idle machine, the owner returns, the job saves itself
and resumes elsewhere; then server and client are killed. The result is that of an
undisturbed run, bit for bit."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from training import TrainingCase


class OneJob(TrainingCase):
    def test_evicted_and_finished_elsewhere(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            job = self.submit(pool)
            self.wait_progress(curly)
            curly.owner("active")
            harness.wait_for(lambda: not curly.attempts(), "the job to leave\n" + pool.all_logs())
            pool.client("moe").start()
            details = pool.wait_state(job, ["done", "failed"])
            self.assertEqual(details["state"], "done", details)
            first, second = details["attempt_list"]
            self.assertEqual(first["ended"], "owner came back")
            self.assertEqual(first["machine_name"], "curly")
            self.assertGreaterEqual(first["quiesce_us"], 0)
            self.assertEqual(second["machine_name"], "moe")
            self.assertTrue(0 < second["resumed_ppm"] < 1000000, second)
            self.assertEqual(details["evictions"], 1)
            self.check_result(pool, job)

    def test_server_and_client_killed(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            job = self.submit(pool)
            attempt = self.wait_progress(curly)
            before = curly.record(attempt)
            old = pool.server_pid()
            pool.kill_server()
            harness.wait_for(lambda: (pool.about() or {}).get("server_pid") not in (None, str(old)),
                             "the supervisor to restart the server\n" + pool.log("server"))
            curly.kill()
            self.assertTrue(harness.alive(int(before["job_pid"])), "the job outlives its client")
            curly.start()
            details = pool.wait_state(job, ["done", "failed"])
            self.assertEqual(details["state"], "done", details)
            self.assertEqual(len(details["attempt_list"]), 1, "neither death costs a job its work")
            self.check_result(pool, job)

    def test_evicted_while_the_server_is_dead(self):
        with harness.Pool() as pool:
            pool.start_server()
            curly = pool.client("curly").start()
            pool.wait_machines(1)
            job = self.submit(pool)
            attempt = self.wait_progress(curly)
            record = curly.record(attempt)
            pool.kill_supervisor()
            curly.owner("active")
            harness.wait_for(lambda: not harness.alive(int(record["job_pid"])), "the job to leave")
            self.assertTrue(curly.attempts(), "the checkpoint waits in the outbox")
            curly.owner("away")
            pool.start_server()
            details = pool.wait_state(job, ["done", "failed"])
            self.assertEqual(details["state"], "done", details)
            self.assertTrue(details["attempt_list"][1]["resumed_ppm"] > 0, details)
            self.check_result(pool, job)


if __name__ == "__main__":
    unittest.main()
