"""Jobs that wait for others: a graph of 200 jobs, some of which fail, and whose outputs feed others,
runs in its order, also when the server dies meanwhile; what can never run says so; what is wrong
with a graph is said before anything is submitted."""

import collections
import os
import random
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import harness

INVALID, NOT_FOUND, CONFLICT = 3, 4, 6
JOBS = 200


def graph():
    """For each job what it waits for: the key ("output": for that job's output) and the number of
    an earlier job."""
    chance = random.Random(7)
    waits_for = []
    for number in range(JOBS):
        few = chance.randrange(4) if number > 0 else 0
        waits_for.append([(chance.choice(["after", "output", "output", "after_any", "after_start"]),
                           chance.randrange(max(0, number - 25), number)) for _ in range(few)])
    return waits_for, {number for number in range(JOBS) if chance.random() < 0.05}


def outcome(waits_for, failing, removed=()):
    """What must become of each job: done, failed, held (it can never run), or waiting (for the end
    of one that is held); `removed`: those that were removed in the end."""
    states = []
    for number, others in enumerate(waits_for):
        lost = any(key != "after_any" and states[other] in ("held", "removed") or
                   key in ("after", "output") and states[other] == "failed"
                   for key, other in others)
        stuck = any(states[other] == "waiting" or
                    key == "after_any" and states[other] == "held" for key, other in others)
        states.append("removed" if number in removed else "held" if lost else
                      "waiting" if stuck else "failed" if number in failing else "done")
    return states


def batch_file(waits_for, failing):
    """Each job writes down its number and what those wrote whose outputs it has."""
    text = '[defaults]\nprogram = "sh"\noutputs = ["out"]\n'
    for number, others in enumerate(waits_for):
        text += ('[[job]]\nname = "j%d"\narguments = ["-c", "cat from-* 2> /dev/null > all; '
                 'echo %d >> all; sort -nu all > out; exit %d"]\n' %
                 (number, number, number in failing))
        sources = {other for key, other in others if key == "output"}
        text += "inputs = [%s]\n" % ", ".join(
            '{ job = "j%d", output = "out", name = "from-%d" }' % (other, other)
            for other in sources)
        for key in ("after", "after_any", "after_start"):
            names = ['"j%d"' % other for other_key, other in others if other_key == key]
            if names:
                text += "%s = [%s]\n" % (key, ", ".join(names))
    return text


class Relations(unittest.TestCase):
    def setUp(self):
        self.pool = harness.Pool()
        self.pool.__enter__()
        self.addCleanup(self.pool.close)
        self.pool.start_server()

    def submit(self, text):
        """Returns the batch and the ids of its jobs."""
        answer = self.pool.sublet("submit", self.write(text))
        first = answer["jobs"]["first"]
        return answer["batch"], range(first, first + answer["jobs"]["count"])

    def write(self, text):
        path = os.path.join(self.pool.folder, "graph.toml")
        with open(path, "w") as f:
            f.write(text)
        return path

    def states(self, batch):
        lines = self.pool.sublet("show", "--graph", "--batch", batch)["jobs"]
        return [line["state"] for line in lines for _ in range(line["count"])]

    def wait_states(self, batch, expected):
        harness.wait_for(lambda: self.states(batch) == expected, "the end of the graph")

    def test_graph_of_200_jobs(self):
        waits_for, failing = graph()
        expected = outcome(waits_for, failing)
        for state in ("done", "failed", "held", "waiting"):
            self.assertIn(state, expected)
        batch, ids = self.submit(batch_file(waits_for, failing))
        curly = self.pool.client("curly", slots=4)
        curly.start()
        harness.wait_for(lambda: self.states(batch).count("done") > 20, "some of the jobs")
        self.pool.kill_server()
        self.pool.wait_serving()
        self.wait_states(batch, expected)
        self.check_order(waits_for, expected, ids)
        self.check_reasons(waits_for, expected, ids)
        self.check_outputs(batch, waits_for, expected, ids)
        self.remove_what_is_stuck(batch, waits_for, failing, expected, ids)

    def check_order(self, waits_for, expected, ids):
        ran = [self.pool.attempts(job) for job in ids]
        for number, others in enumerate(waits_for):
            if expected[number] not in ("done", "failed"):
                self.assertEqual(ran[number], [])
                continue
            for key, other in others:
                # Of a short run only its end may have been reported.
                happened = (ran[other][0]["started_us"] or ran[other][0]["finished_us"]
                            if key == "after_start" else ran[other][-1]["finished_us"])
                self.assertGreater(happened, 0)
                self.assertLessEqual(happened, ran[number][0]["decided_us"], (number, key, other))

    def check_outputs(self, batch, waits_for, expected, ids):
        target = os.path.join(self.pool.folder, "outputs")
        self.pool.run("fetch", "--batch", batch, "--by-job", "--into", target)
        written = []
        for number, others in enumerate(waits_for):
            written.append({number}.union(*[written[other] for key, other in others
                                            if key == "output"]))
            if expected[number] == "done":
                with open(os.path.join(target, str(ids[number]), "out")) as f:
                    self.assertEqual([int(line) for line in f], sorted(written[number]))

    def check_reasons(self, waits_for, expected, ids):
        names = {ids[other] for others in waits_for for _, other in others}
        for number, state in enumerate(expected):
            reason = self.pool.job(ids[number])["reason"]
            if state == "held":
                self.assertRegex(reason, r"^held: it can never run: job \d+, which it waits for, "
                                         r"(has failed|can never run either)$")
                self.assertIn(int(reason.split("job ")[1].split(",")[0]), names)
            if state == "waiting":
                self.assertRegex(reason, r"^waits until job \d+ ")
        held = ids[expected.index("held")]
        status, out, _ = self.pool.run("why", held)
        self.assertEqual(status, 0)
        self.assertIn(": it can never run: job ", out)
        self.assertEqual(self.pool.sublet("release", held)["changed"], 0)
        self.assertEqual(self.pool.job_state(held), "held")

    def remove_what_is_stuck(self, batch, waits_for, failing, expected, ids):
        """Those that wait for the end of one that is held run once that is removed."""
        held = {number for number, state in enumerate(expected) if state == "held"}
        self.pool.sublet("rm", *[ids[number] for number in held])
        self.wait_states(batch, outcome(waits_for, failing, held))

    def test_removed_if_it_can_never_run(self):
        batch, ids = self.submit(
            '[batch]\nnever_satisfied = "remove"\n[defaults]\nprogram = "true"\n'
            '[[job]]\nprogram = "false"\n[[job]]\nname = "second"\nafter = ["false"]\ncount = 100\n'
            '[[job]]\nname = "third"\nafter_start = ["second[7]"]\n'
            '[[job]]\nname = "last"\nafter_any = ["second", "third"]\n')
        self.pool.client("curly").start()
        self.wait_states(batch, ["failed"] + ["removed"] * 101 + ["done"])
        self.assertEqual(self.pool.job(ids[101])["reason"],
                         "it could never run: job %d, which it waits for, was removed" % ids[8])

    def test_jobs_of_other_batches(self):
        first = self.pool.submit("--", "true")[0]
        second = self.pool.submit("--after", first, "--", "true")[0]
        self.assertEqual(self.pool.job(second)["reason"], "waits until job %d is done" % first)
        status, out, _ = self.pool.run("show", "--graph", first, second)
        self.assertEqual((status, [line.split() for line in out.split("\n")]),
                         (0, [["ID", "NAME", "STATE", "AFTER"], [str(first), "true", "waiting"],
                              [str(second), "true", "waiting", str(first)], []]))
        self.pool.client("curly").start()
        self.pool.wait_state(second, ["done"])
        # Done already; and failed already.
        third = self.pool.submit("--after", "%d-%d" % (first, second), "--", "false")[0]
        self.pool.wait_state(third, ["failed"])
        self.refused(CONFLICT, "waits for job %d, which has failed" % third,
                     "--after", third, "--", "true")
        self.pool.wait_state(self.pool.submit("--after-any", third, "--", "true")[0], ["done"])

    def test_outputs_feed_dependents(self):
        """Also if they were discarded meanwhile, and after a restart; then they are removed."""
        batch, ids = self.submit(
            '[defaults]\nprogram = "sh"\n'
            '[[job]]\nname = "part"\ncount = 5\narguments = ["-c", "echo {index} > part-{index}"]\n'
            'outputs = ["part-{index}"]\n'
            '[[job]]\nname = "double"\ncount = 5\n'
            'arguments = ["-c", "cat in in > out"]\noutputs = ["out"]\n'
            'inputs = [{ job = "part[{index}]", output = "part-{index}", name = "in" }]\n'
            '[[job]]\nname = "sum"\narguments = ["-c", "cat double-* > all"]\noutputs = ["all"]\n'
            'inputs = [%s]\n' % ", ".join(
                '{ job = "double[%d]", output = "out", name = "double-%d" }' % (i, i)
                for i in range(5)))
        self.pool.sublet("hold", ids[5])
        curly = self.pool.client("curly", slots=2)
        curly.start()
        for job in list(ids[:5]) + list(ids[6:10]):
            self.pool.wait_state(job, ["done"])
        for job in ids[:5]:
            self.pool.run("fetch", "--discard", job, "--into", "parts")
        # The first part is needed by the job that is held, the others by none.
        self.assertEqual([len(self.pool.job(job)["outputs"]) for job in ids[:5]], [1, 0, 0, 0, 0])
        self.pool.kill_server()
        self.pool.wait_serving()
        self.pool.sublet("release", ids[5])
        self.pool.wait_state(ids[10], ["done"])
        target = os.path.join(self.pool.folder, "sum")
        self.pool.run("fetch", ids[10], "--into", target)
        with open(os.path.join(target, "all")) as f:
            self.assertEqual(f.read(), "0\n0\n1\n1\n2\n2\n3\n3\n4\n4\n")
        harness.wait_for(lambda: not self.pool.job(ids[0])["outputs"], "the housekeeper")
        self.refused(INVALID, "`out` is an input, but no required output of job 'part'",
                     "--input-from", "%d:out" % ids[0], "--", "true")
        self.refused(NOT_FOUND, "the output `part-1` of job %d is kept no longer" % ids[1],
                     "--input-from", "%d:part-1" % ids[1], "--", "true")

    def refused(self, status, what, *words):
        got, out, err = self.pool.run("submit", *words)
        self.assertEqual((got, out), (status, ""), err)
        self.assertIn(what, err)

    def test_bad_graphs(self):
        jobs = '[defaults]\nprogram = "true"\n'
        self.refused(NOT_FOUND, "there is no job 99, which a job of the batch waits for",
                     "--after", "99", "--", "true")
        self.refused(INVALID, "graph.toml:4:10: no job of this batch is called 'b'",
                     self.write(jobs + '[[job]]\nafter = ["b"]\n'))
        self.refused(INVALID, "job 0 (a) of the batch waits for itself",
                     self.write(jobs + '[[job]]\nname = "a"\nafter = ["a"]\n'))
        self.refused(INVALID, "job 0 (a) -> job 1 (b) -> job 2 (c) -> job 0 (a)",
                     self.write(jobs + '[[job]]\nname = "a"\nafter = ["b"]\n[[job]]\nname = "b"\n'
                                'after_any = ["c"]\n[[job]]\nname = "c"\nafter_start = ["a"]\n'))
        self.assertEqual(self.pool.sublet("ls", "--all")["jobs"], [])

    def test_the_example(self):
        """Words are counted in three stages, each of which gets the outputs of the one before."""
        with harness.Pool() as pool:
            pool.start_server()
            for name in ("curly", "moe"):
                pool.client(name).start()
            pool.wait_machines(2)
            into = os.path.join(pool.folder, "words")
            status, out, err = pool.run(
                "submit", "--wait", "--into", into,
                os.path.join(harness.ROOT, "examples", "pipeline", "words.toml"))
            self.assertEqual(status, 0, err + out)
            words = collections.Counter()
            for name in ("job_scheduler", "machine_allocator", "types"):
                with open(os.path.join(harness.ROOT, "idl", name + ".idl")) as f:
                    words.update(re.findall("[A-Za-z]+", f.read()))
            top, = (name for name in os.listdir(into) if name.startswith("top."))
            with open(os.path.join(into, top)) as f:
                lines = [line.split() for line in f]
            expected = sorted(words.items(), key=lambda word: (-word[1], word[0]))[:10]
            self.assertEqual([(word, int(count)) for count, word in lines], expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
