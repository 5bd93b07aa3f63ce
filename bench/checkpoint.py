"""The letters network's checkpoint: its size, how long a synced save takes, what a point costs.

The size is that of the file which the example writes when it is asked to leave. The save is
of the same number of doubles, through the checkpoint API. The limit is writing the same
number of bytes to a new file, syncing and renaming it, and syncing the folder. An idle point
is measured in a loop, against the same loop without it, each the fastest of many rounds."""

import os
import signal
import subprocess
import tempfile
import time

import harness
import measure

HIDDEN = 55
DOUBLES = (16 + 1) * HIDDEN + (HIDDEN + 1) * 26
IDLE_POINT_NS = 1
LETTERS = os.path.join(harness.ROOT, "examples", "back-propagation", "letter-recognition.data")


def run(report, quick):
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as folder:
        size = letters_size(os.path.join(folder, "letters"))
        report.add("letters_size", size, "bytes", 8 * DOUBLES)
        count = 20 if quick else 1000
        bare = measure.limits("save", os.path.join(folder, "bare"), size, count)
        took = measure.run_program("save", os.path.join(folder, "saved"), DOUBLES, count)
        for percent in ("p50", "p99"):
            report.add("save_" + percent, 1000 * took[percent], "ms", 1000 * bare[percent])
    idle_point(report, quick)


def idle_point(report, quick):
    took = measure.run_program("point", 3 if quick else 100)
    cost = max(0, took["point_ns"] - took["loop_ns"])
    report.add("idle_point", cost, "ns", budget=IDLE_POINT_NS)
    report.add("idle_point_called", max(0, took["call_ns"] - took["loop_ns"]), "ns")
    if cost > IDLE_POINT_NS and not quick:
        raise measure.Missed("beyond the budget: idle_point")


def letters_size(path):
    """The size of the checkpoint of a run that was asked to leave during its work."""
    def left():
        training = subprocess.Popen(
            [os.path.join(harness.BIN, "back-propagation"), "--data", LETTERS, "--epochs", "1000",
             "--hidden", str(HIDDEN), "--checkpoint", path],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        training.send_signal(signal.SIGTERM)
        training.wait()
        return os.path.exists(path)
    harness.wait_for(left, "the letters to leave a checkpoint")
    return os.path.getsize(path)
