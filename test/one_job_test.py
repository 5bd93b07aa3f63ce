"""The one real path: a job on an idle machine, the owner returns, the job saves
itself and goes on elsewhere; then server and client die of SIGKILL; the result
is that of an undisturbed run, bit by bit."""

import os
import shutil
import subprocess
import unittest

import harness

DATA = os.path.join(harness.ROOT, "examples", "back-propagation", "letter-recognition.data")
PROGRAM = os.path.join(harness.BIN, "back-propagation")


def arguments(epochs, weights, data="letter-recognition.data"):
    return ["--data", data, "--epochs", str(epochs), "--weights", weights]


def alone(folder, epochs):
    weights = os.path.join(folder, "alone.bin")
    out = subprocess.run([PROGRAM] + arguments(epochs, weights, DATA), check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    with open(weights, "rb") as f:
        return out, f.read()


class OneJob(unittest.TestCase):
    EPOCHS = 25

    def submit(self, pool):
        folder = os.path.join(pool.folder, "desk")
        os.makedirs(folder, exist_ok=True)
        shutil.copy(DATA, folder)
        return pool.submit("--input", "letter-recognition.data", "--output", "weights.bin", "--",
                           PROGRAM, *arguments(self.EPOCHS, "weights.bin"), cwd=folder)[0]

    def wait_progress(self, client):
        """Until the job there has done some work; returns the attempt."""
        def working():
            for attempt in client.attempts():
                path = os.path.join(client.state, "attempts", attempt, "status")
                try:
                    with open(path, "rb") as f:
                        page = f.read(64)
                except FileNotFoundError:
                    continue
                ppm = int.from_bytes(page[48:52], "little", signed=True)
                if ppm > 20000:
                    return attempt
            return None
        return harness.wait_for(working, "a job to work on " + client.name + "\n" +
                                client.pool.all_logs())

    def check_result(self, pool, job):
        expected = alone(pool.folder, self.EPOCHS)
        target = os.path.join(pool.folder, "results")
        status, out, err = pool.run("fetch", job, "--into", target)
        self.assertEqual(status, 0, err)
        names = os.listdir(target)
        with open(os.path.join(target, "weights.bin"), "rb") as f:
            self.assertEqual(f.read(), expected[1])
        text = [n for n in names if n.endswith(".out")]
        with open(os.path.join(target, text[0])) as f:
            self.assertEqual(f.read(), expected[0])

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
