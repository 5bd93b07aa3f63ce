"""How soon the owner has the machine back, and how soon the owner's load is detected.

event: the owner's return, by the monitor's control file, which takes effect at once. told: the
job receives the signal to leave (until then it has minimal CPU weight; while it saves, its CPU
allowance applies). gone: a job with nothing to save has exited. stopped: the last instant at
which a job runs that ignores the request and uses all CPU it gets. The limit is a bare signal,
from sending it until its handler runs.
load: a program of the owner's begins to use a core; the limit is one sampling period."""

import os
import struct
import subprocess
import time

import harness
import measure

SAMPLE_SECONDS = 0.5  # sample_period


def run(report, quick):
    bare = measure.limits("signal", 20 if quick else 300)
    signal = (bare["p50"], bare["p99"])
    leaves(report, 2 if quick else 60, signal)
    stays(report, 1 if quick else 15, signal)
    if not quick:  # needs an otherwise idle machine
        load(report, 15)


def leaves(report, rounds, signal):
    to_told, to_gone = [], []
    with harness.Pool() as pool:
        curly, told = start(pool)
        tenants = measure.Tenants(pool, told, "leave")
        for _ in range(rounds):
            pid = tenants.start()
            event = time.monotonic()
            curly.owner("active")
            gone = measure.until_gone(pid)
            at, _ = told.hear("told")
            to_told.append(at - event)
            to_gone.append(gone - event)
            tenants.end()
            curly.owner("away")
        told.close()
    report.add_delays("event_to_told", to_told, signal)
    report.add_delays("event_to_gone", to_gone, signal)


def stays(report, rounds, signal):
    to_stopped = []
    with harness.Pool() as pool:
        clock = os.path.join(pool.folder, "last-ran")
        with open(clock, "wb") as f:
            f.write(bytes(8))
        os.chmod(clock, 0o666)
        curly, told = start(pool)
        tenants = measure.Tenants(pool, told, "stay", clock)
        for _ in range(rounds):
            pid = tenants.start()
            event = time.monotonic()
            curly.owner("active")
            measure.until_gone(pid)
            with open(clock, "rb") as f:
                to_stopped.append(struct.unpack("=q", f.read(8))[0] / measure.NS - event)
            tenants.end()
            curly.owner("away")
        told.close()
    report.add_delays("event_to_stopped", to_stopped, signal)


def start(pool, **options):
    pool.start_server()
    curly = pool.client("curly", **options).start()
    pool.wait_machines(1)
    return curly, measure.Told(pool)


def load(report, rounds):
    delays = []
    with harness.Pool() as pool:
        _, told = start(pool, scripted=False, monitor_sets=["idle_time=1s", "input=false"])
        tenants = measure.Tenants(pool, told, "leave")
        for _ in range(rounds):
            tenants.start()
            time.sleep(SAMPLE_SECONDS)
            began = time.monotonic()
            owners = subprocess.Popen(["sh", "-c", "while :; do :; done"])
            try:
                at, _ = told.hear("told")
                tenants.end()
            finally:
                owners.kill()
                owners.wait()
            delays.append(at - began)
        told.close()
    report.add_delays("load_to_told", delays, (SAMPLE_SECONDS, SAMPLE_SECONDS))
