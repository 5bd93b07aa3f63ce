"""The letters network's checkpoint: its size, how long a synced save takes, and how soon the program
leaves, beside the image of the whole process; saves and restores of 1 MB to 1 GB; what a point costs.

The size is that of the file which the example writes when it is asked to leave. The save is of the
same number of doubles, through the checkpoint API. The limit of saves and restores is writing the
same number of bytes to a new file, syncing and renaming it, and syncing the folder; a restore reads
from the page cache. Rounds of both alternate, and the median of the rounds counts: a shared machine
changes its speed by a quarter between two runs of the same program. The image is what the process
has in memory. An idle point is measured in a loop, against the same loop without it, or in Python
with an empty call, each the fastest of many rounds."""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import harness
import measure

HIDDEN = 55
DOUBLES = (16 + 1) * HIDDEN + (HIDDEN + 1) * 26
IDLE_POINT_NS = 1
IDLE_POINT_CALLS = 1.5  # Python's, in empty calls
SAVE_OF_PLAIN = 1.1  # the letters' save, in plain writes of the same size
# name, doubles, saves in a round
SIZES = [("1mb", 125000, 100), ("32mb", 4000000, 10), ("1gb", 125000000, 2)]
QUICK_SIZES = [("1mb", 125000, 3)]
OF_PLAIN = 0.8  # at least this part of the speed of plain writing
LETTERS = os.path.join(harness.ROOT, "examples", "back-propagation", "letter-recognition.data")


def run(report, quick):
    missed = []
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as folder:
        letters(report, folder, quick)
        took, bare = rounds(folder, DOUBLES, 20 if quick else 100, 2 if quick else 20)
        budget = SAVE_OF_PLAIN * bare["p50"]
        report.add("save_p50", 1000 * took["p50"], "ms", 1000 * bare["p50"], 1000 * budget)
        missed += over("save_p50", took["p50"], budget)
        report.add("save_p99", 1000 * took["p99"], "ms", 1000 * bare["p99"])
        for name, doubles, count in QUICK_SIZES if quick else SIZES:
            missed += of_size(report, folder, name, doubles, count)
    missed += idle_point(report, quick)
    missed += python_point(report, quick)
    if missed and not quick:
        raise measure.Missed("beyond the budget: " + ", ".join(missed))


def over(metric, value, budget):
    return [metric] if value > budget else []


def rounds(folder, doubles, count, number):
    """A `number` of rounds of `count` saves and as many plain writes: the medians of each."""
    took, bare, path = [], [], os.path.join(folder, "rounds")
    for _ in range(number):
        bare.append(measure.limits("save", path + ".bare", doubles * 8, count))
        took.append(measure.run_program("save", path, doubles, count))
    for entry in os.scandir(folder):
        if entry.name.startswith("rounds"):
            os.remove(entry)
    return medians(took), medians(bare)


def medians(results):
    return {key: statistics.median(result[key] for result in results) for key in results[0]}


def of_size(report, folder, name, doubles, count):
    missed = []
    took, bare = rounds(folder, doubles, count, 5)
    limit = bare["p50"]
    for metric, value in ("save_", took["p50"]), ("restore_", took["restored_p50"]):
        report.add(metric + name, 1000 * value, "ms", 1000 * limit, 1000 * limit / OF_PLAIN)
        missed += over(metric + name, value, limit / OF_PLAIN)
    return missed


def idle_point(report, quick):
    took = measure.run_program("point", 3 if quick else 100)
    cost = max(0, took["point_ns"] - took["loop_ns"])
    report.add("idle_point", cost, "ns", budget=IDLE_POINT_NS)
    report.add("idle_point_called", max(0, took["call_ns"] - took["loop_ns"]), "ns")
    return over("idle_point", cost, IDLE_POINT_NS)


PYTHON_POINT = """
import sys, time
from sublet import checkpoint

class Empty:
    def call(self):
        pass

def fastest(call, rounds):
    best = 1e9
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(200000):
            call()
        best = min(best, time.perf_counter() - began)
    return best * 1e9 / 200000

with checkpoint.open("bench", 1, path=sys.argv[1], period=0) as c:
    c.value("step", 0)
    c.point()
    rounds = int(sys.argv[2])
    print(fastest(c.point, rounds), fastest(Empty().call, rounds))
"""


def python_point(report, quick):
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as folder:
        out = subprocess.run(
            [sys.executable, "-B", "-c", PYTHON_POINT, os.path.join(folder, "point"),
             str(3 if quick else 50)], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.path.join(harness.ROOT, "python")}).stdout
    point, empty = map(float, out.split())
    report.add("python_idle_point", point, "ns", empty, IDLE_POINT_CALLS * empty)
    return over("python_idle_point", point, IDLE_POINT_CALLS * empty)


def letters(report, folder, quick):
    """A run that is asked to leave during its work: its checkpoint and image, and how soon it is
    gone, beside the time to write that image."""
    path, images, gone = os.path.join(folder, "letters"), [], []

    def left():
        training = subprocess.Popen(
            [os.path.join(harness.BIN, "back-propagation"), "--data", LETTERS, "--epochs", "100000",
             "--hidden", str(HIDDEN), "--checkpoint", path],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        images.append(resident(training.pid))
        asked = time.monotonic()
        training.send_signal(signal.SIGTERM)
        training.wait()
        gone.append(time.monotonic() - asked)
        return os.path.exists(path)
    for _ in range(2 if quick else 20):
        harness.wait_for(left, "the letters to leave a checkpoint")
    report.add("letters_size", os.path.getsize(path), "bytes", 8 * DOUBLES)
    image = max(images)
    report.add("letters_image", image, "bytes")
    written = measure.limits("save", os.path.join(folder, "image"), image, 5 if quick else 20)
    report.add("letters_gone_p50", 1000 * measure.percentile(gone, 50), "ms",
               1000 * written["p50"])


def resident(pid):
    """Bytes of the process in memory."""
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Rss:")) * 1024
