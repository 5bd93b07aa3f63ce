"""The steps of an eviction that begins at the monitor's control file, and the end of a job whose
shepherd has died."""

import contextlib
import os
import signal
import time

import harness
import measure
from owner.evictions import Workstation
from owner.programs import OwnersPrograms


def run(report, quick):
    bare = measure.limits("signal", 20 if quick else 300)
    bare_signal = (bare["p50"], bare["p99"])
    leaves(report, 2 if quick else 60, bare_signal)
    orphans(report, 1 if quick else 100, bare_signal)


def leaves(report, rounds, bare_signal):
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
    report.add_delays("event_to_told", to_told, bare_signal)
    report.add_delays("event_to_gone", to_gone, bare_signal)


def start(pool, **options):
    """A workstation, and an ear for its jobs."""
    pool.start_server()
    curly = pool.client("curly", **options).start()
    pool.wait_machines(1)
    return curly, measure.Told(pool)


def orphans(report, rounds, bare_signal):
    to_gone = []
    with harness.Pool() as pool, OwnersPrograms() as programs, contextlib.ExitStack() as stack:
        here = Workstation(pool, stack)
        for _ in range(rounds):
            pid = here.tenants.start("deaf")
            shepherd = harness.wait_for(lambda: shepherd_of(here.client, pid), "the job's record")
            with programs.running():
                died = time.monotonic()
                os.kill(shepherd, signal.SIGKILL)
                to_gone.append(measure.until_gone(pid) - died)
            here.settle()
    report.add_delays("orphan_gone", to_gone, bare_signal)


def shepherd_of(client, pid):
    records = filter(None, map(client.record, client.attempts()))
    return next((int(r["shepherd_pid"]) for r in records if int(r["job_pid"]) == pid), None)
