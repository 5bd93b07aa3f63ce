"""A training job: submits it, waits for it, and compares its result with that of an
undisturbed run."""

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


class TrainingCase(unittest.TestCase):
    EPOCHS = 25

    def submit(self, pool):
        folder = os.path.join(pool.folder, "desk")
        os.makedirs(folder, exist_ok=True)
        shutil.copy(DATA, folder)
        return pool.submit("--input", "letter-recognition.data", "--output", "weights.bin", "--",
                           PROGRAM, *arguments(self.EPOCHS, "weights.bin"), cwd=folder)[0]

    def wait_progress(self, client):
        """Waits until the job there has done some work; returns the attempt."""
        def working():
            for attempt in client.attempts():
                folder = os.path.join(client.state, "attempts", attempt)
                path = os.path.join(folder, "status")
                # Until its program has been started, the page may be that of the attempt before,
                # whose folder it has got.
                if not os.path.exists(os.path.join(folder, "record")):
                    continue
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
