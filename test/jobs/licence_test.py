"""What machines offer by name, and the pool's licences: never more are held than there are, also
across a restart of the server, and `sublet why` names who holds them."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness
from harness import wait_for

CONFLICT, INVALID = 6, 3
# Records its begin and end, between which it waits for its gate.
PROGRAM = """
echo "begin $SUBLET_JOB $SUBLET_GPUS" >> ledger; echo "$SUBLET_RESOURCES/$CUDA_VISIBLE_DEVICES"
until test -e go-$SUBLET_JOB; do sleep 0.02; done
echo "end $SUBLET_JOB" >> ledger
"""


class Licences(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.pool.__enter__()
        self.addCleanup(self.pool.close)
        self.ledger = os.path.join(self.pool.folder, "ledger")
        with open(self.ledger, "w"):
            pass
        os.chmod(self.ledger, 0o666)

    def client(self, name, slots, *sets):
        extra = [word for setting in sets for word in ("--set", setting)]
        return self.pool.client(name, slots=slots, extra=extra).start()

    def submit(self, *options):
        program = "cd '%s'\n%s" % (self.pool.folder, PROGRAM)
        return self.pool.submit(*options, "--", "sh", "-c", program)

    def lines(self):
        with open(self.ledger) as f:
            return [line.split() for line in f if line.endswith("\n")]

    def at_work(self):
        """The jobs that have begun and not ended, in order."""
        ended = [line[1] for line in self.lines() if line[0] == "end"]
        return [int(line[1]) for line in self.lines() if line[0] == "begin" and line[1] not in ended]

    def gpus(self, job):
        return [line[2:] for line in self.lines() if line[:2] == ["begin", str(job)]][-1]

    def wait_at_work(self, count):
        wait_for(lambda: len(self.at_work()) == count,
                 lambda: "%d jobs to be at work: %s" % (count, self.lines()))
        return self.at_work()

    def finish(self, job):
        with open(os.path.join(self.pool.folder, "go-%d" % job), "w"):
            pass
        self.pool.wait_state(job, "done")

    def why(self, job):
        return self.pool.run("why", str(job))[1]

    def test_several_beside_a_stream(self):
        """Kept for a job that needs three, as soon as one comes back."""
        pool = self.pool
        pool.start_server(["scheduling.licences=ansys=3", "scheduling.wide_wait=0 s",
                           "scheduling.jobs=fifo"])
        self.client("curly", 4)
        pool.wait_machines(1)
        singles = self.submit("--count", "3", "--resource", "ansys=1")
        self.wait_at_work(3)
        several, = self.submit("--resource", "ansys=3")
        more = self.submit("--count", "3", "--resource", "ansys=1")
        self.finish(singles[0])
        wait_for(lambda: "waits for 3 licences of ansys, which are kept for it as they come back: "
                 "2 of 3 are held by jobs %d, %d" % tuple(singles[1:]) in self.why(several),
                 lambda: "the licences to be kept: " + self.why(several))
        self.assertIn("3 licences are kept for job %d" % several, self.why(more[0]))
        for job in singles[1:]:
            self.assertNotIn(more[0], self.at_work())
            self.finish(job)
        self.assertEqual([several], self.wait_at_work(1))
        self.finish(several)
        self.wait_at_work(3)
        for job in more:
            self.finish(job)

    def test_three_of_eight(self):
        pool = self.pool
        pool.start_server(["scheduling.licences=ansys=3, maple=1"])
        for name in ("curly", "moe"):
            self.client(name, 4)
        pool.wait_machines(2)
        jobs = self.submit("--count", "8", "--resource", "ansys=1")
        for round_ in range(8):
            running = self.wait_at_work(min(3, 8 - round_))
            waiting = [job for job in jobs if pool.job_state(job) == "waiting"]
            self.assertEqual(8 - round_ - len(running), len(waiting))
            if waiting:
                self.assertIn("waits for a licence of ansys: 3 of 3 are held by jobs %s" %
                              ", ".join(map(str, sorted(running))), self.why(waiting[0]))
            if round_ == 1:
                pool.kill_server()  # and the supervisor starts it again
            if round_ == 3:
                pool.stop_server()
                pool.start_server(["scheduling.licences=ansys=3, maple=1"])
                pool.wait_machines(2)
            self.finish(running[0])
        held = 0
        for line in self.lines():
            held += 1 if line[0] == "begin" else -1
            self.assertLessEqual(held, 3)
        self.assertEqual(16, len(self.lines()))
        # Who asks for none, or for another, is not behind them.
        self.submit("--count", "3", "--resource", "ansys=1")
        self.wait_at_work(3)
        self.submit()
        self.submit("--resource", "maple=1")
        self.wait_at_work(5)

    def test_of_a_machine(self):
        """There is no GPU here: a folder stands in for /dev."""
        pool = self.pool
        pool.start_server()
        root = os.path.join(pool.folder, "root")
        os.makedirs(root + "/dev")
        for name in ("nvidia0", "nvidia2", "nvidiactl"):
            with open(root + "/dev/" + name, "w"):
                pass
        self.client("curly", 6, "resources=scanner=1", "root=" + root)
        self.client("moe", 1)
        pool.wait_machines(2)
        curly = [m for m in pool.machines() if m["name"] == "curly"][0]
        self.assertEqual({"gpu": 2, "scanner": 1}, curly["resources"])
        self.assertIn("gpu 2/2 scanner 1/1", pool.run("machines")[1])
        jobs = self.submit("--count", "3", "--resource", "gpu=1")
        first, second = self.wait_at_work(2)
        self.assertEqual([["0"], ["2"]], sorted((self.gpus(first), self.gpus(second))))
        third, = set(jobs) - {first, second}
        self.assertIn("1 machine fits, full", self.why(third))
        self.assertEqual({"gpu": 1}, pool.job(third)["description"]["needs"]["resources"])
        scanner, = self.submit("--resource", "scanner=1")
        self.wait_at_work(3)
        curly = [m for m in pool.machines() if m["name"] == "curly"][0]
        self.assertEqual({"gpu": 0, "scanner": 0},
                         dict(dict.fromkeys(curly["resources"], 0), **curly["resources_free"]))
        # A client that is started again knows who has which.
        client = pool.clients["curly"]
        client.kill()
        client.start()
        self.finish(first)
        self.wait_at_work(3)
        self.assertEqual(self.gpus(first), self.gpus(third))
        for job in (second, third, scanner):
            self.finish(job)
        self.assertEqual("gpu=1/%s" % self.gpus(third)[0], pool.output(third)[1].strip())
        self.assertEqual("scanner=1/", pool.output(scanner)[1].strip())

    def test_what_nobody_has(self):
        pool = self.pool
        pool.start_server(["scheduling.licences=ansys=3"])
        self.client("curly", 2, "resources=gpu=1, matlab=2, ansys=9")
        pool.wait_machines(1)
        self.assertIn("machine curly offers ansys, of which the pool has licences",
                      pool.all_logs())
        for asked, said in (("gpu=2", "no machine offers 2 gpu (largest: 1 on curly)"),
                            ("fpga=1", "no machine offers 1 fpga"),
                            ("ansys=4", "the pool has 3 licences of ansys, it needs 4")):
            status, _, err = pool.run("submit", "--resource", asked, "--", "true")
            self.assertEqual(CONFLICT, status, err)
            self.assertIn(said, err)
            job, = pool.submit("--even-so", "--resource", asked, "--", "true")
            self.assertIn(said, self.why(job))
        # Licences are switched while the server runs; so is what is nobody's.
        job, = pool.submit("--even-so", "--resource", "fpga=1", "--resource", "matlab=2",
                           "--", "true")
        for wrong, said in (("licences=fpga", "not of the form NAME=AMOUNT"),
                            ("licences=Fpga=1", "'Fpga' is not a name")):
            status, _, err = pool.run("admin", "policy", "--set", wrong)
            self.assertEqual(INVALID, status, err)
            self.assertIn(said, err)
        policy = pool.sublet("admin", "policy", "--set", "licences=fpga=1, ansys=3")
        self.assertEqual("ansys=3 fpga=1", policy["parameters"]["licences"])
        pool.wait_state(job, "done")

    def test_a_batch_file(self):
        pool = self.pool
        pool.start_server(["scheduling.licences=ansys=1"])
        self.client("curly", 2, "resources=gpu=1")
        pool.wait_machines(1)
        path = os.path.join(pool.folder, "batch.toml")

        def write(resources):
            with open(path, "w") as f:
                f.write("[[job]]\nprogram = 'sh'\narguments = ['-c', 'echo $SUBLET_RESOURCES']\n"
                        "needs = { resources = %s }\n" % resources)
        write("{ gpu = 1, ansys = 1 }")
        job, = pool.submit(path)
        pool.wait_state(job, "done")
        self.assertEqual("ansys=1 gpu=1", pool.output(job)[1].strip())
        for wrong, said in (("{ gpu = 0 }", ":4:31: gpu must be between 1 and 1000000"),
                            ("{ cores = 2 }", ":4:23: resources: 'cores' is not a named amount"),
                            ("'gpu=1'", ":4:23: resources must be a table")):
            write(wrong)
            status, _, err = pool.run("submit", path)
            self.assertNotEqual(0, status)
            self.assertIn(said, err)


if __name__ == "__main__":
    unittest.main()
