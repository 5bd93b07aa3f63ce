"""A client cut off from the server: its job saves itself, is frozen, and is either
resumed or replaced, never both."""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

LEASE = "scheduling.lease=6 s"
# Writes its attempt and the time every few milliseconds while it runs.
STAMPER = "while :; do echo $SUBLET_ATTEMPT $(date +%%s.%%N) >> %s; sleep 0.01; done"


class CutOff(unittest.TestCase):
    def start(self, pool):
        pool.start_server()
        self.stamps = os.path.join(pool.folder, "stamps")
        open(self.stamps, "w").close()
        os.chmod(self.stamps, 0o666)
        curly = pool.client("curly").start()
        pool.wait_machines(1)
        job = pool.submit("--name", "stamper", "--", "sh", "-c", STAMPER % self.stamps)[0]
        harness.wait_for(lambda: self.read(), "stamps\n" + pool.all_logs())
        return curly, job

    def read(self):
        with open(self.stamps) as f:
            lines = [line.split() for line in f if line.count(" ") == 1]
        return [(int(a), float(t)) for a, t in lines if "." in t]

    def check_never_both(self, attempts):
        by_attempt = {}
        for attempt, at in self.read():
            by_attempt.setdefault(attempt, []).append(at)
        self.assertEqual(sorted(by_attempt), list(range(1, attempts + 1)))
        spans = sorted((min(t), max(t)) for t in by_attempt.values())
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            self.assertLess(end, begin, "two attempts ran at once")

    def test_freezes_and_resumes(self):
        with harness.Pool(server_sets=[LEASE]) as pool:
            curly, job = self.start(pool)
            server = harness.children(pool.supervisor.pid)[0]
            # Supervisor first, or it would restart the server that no longer answers.
            harness.kill(pool.supervisor.pid, signal.SIGSTOP)
            harness.kill(server, signal.SIGSTOP)
            record = curly.record(curly.attempts()[0])
            harness.wait_for(lambda: harness.is_frozen(record),
                             "the job to freeze\n" + pool.all_logs())
            self.assertTrue(curly.attempts(), "frozen, not killed")
            frozen = len(self.read())
            harness.kill(server, signal.SIGCONT)
            harness.kill(pool.supervisor.pid, signal.SIGCONT)
            harness.wait_for(lambda: len(self.read()) > frozen + 5,
                             "the job to go on\n" + pool.all_logs())
            self.check_never_both(1)
            pool.sublet("rm", job)

    def test_is_replaced(self):
        with harness.Pool(server_sets=[LEASE]) as pool:
            curly, job = self.start(pool)
            moe = pool.client("moe").start()
            pool.wait_machines(1)
            curly.process.send_signal(signal.SIGSTOP)
            harness.wait_for(lambda: any(a == 2 for a, _ in self.read()),
                             "the job to go on elsewhere\n" + pool.all_logs())
            self.check_never_both(2)
            curly.process.send_signal(signal.SIGCONT)
            harness.wait_for(lambda: not curly.attempts(), "the old attempt to be given up\n" +
                             pool.all_logs())
            self.check_never_both(2)
            pool.wait_state(job, "running")
            self.assertEqual(pool.job(job)["machine"], "moe")
            pool.sublet("rm", job)


if __name__ == "__main__":
    unittest.main()
