"""The owner's CPU use in several patterns (bench-pattern), beside a job: how soon it is noticed,
or for how long it is not, below the threshold of a quarter of a core."""

import contextlib
import os
import signal
import subprocess
import time

import harness
import measure

BUDGET_MS = 500
SAMPLE_SECONDS = 0.5  # sample_period
# A pause of another length each time, so that the program begins anywhere between two samples.
PAUSES = [0.5 + 0.037 * step for step in range(7)]
# After this, what the submission of a job used is no longer in a sample.
SETTLE_SECONDS = 1.5
# How long a program below the threshold is watched.
WATCHED_SECONDS = 10
PATTERNS = {"steady": ["steady"], "on_off": ["on-off"], "bursts": ["between-ticks"],
            "niced": ["steady"], "short": ["short"]}
NICE = {"niced": 19}
SETTINGS = ["idle_time=1 s", "input=false"]
# Detection needs an otherwise idle machine: a quick run does without it.
UNWATCHED = SETTINGS + ["cpu.become_idle=1000", "cpu.stay_idle=1000"]


def run(report, quick):
    if quick:
        return light(report, 0.2, UNWATCHED)
    for name, words in PATTERNS.items():
        noticed(report, name, words, 20)
    light(report, WATCHED_SECONDS, SETTINGS)


def start(pool, settings):
    """A workstation, and an ear for its jobs. Nobody asks the server for the machine's state: on a
    machine that is watched, the questions are a busy owner."""
    pool.start_server()
    pool.client("curly", scripted=False, monitor_sets=settings).start()
    return measure.Told(pool)


def noticed(report, name, words, rounds):
    delays = []
    with harness.Pool() as pool:
        told = start(pool, SETTINGS)
        tenants = measure.Tenants(pool, told, "leave")
        for turn in range(rounds):
            with stopped_program(words, NICE.get(name, 0)) as begin:
                tenants.start()
                time.sleep(PAUSES[turn % len(PAUSES)])
                began = begin()
                at, _ = told.hear("told")
                tenants.end()
            delays.append(at - began)
        told.close()
    report.add_spread(name + "_told", delays, BUDGET_MS)


@contextlib.contextmanager
def stopped_program(words, nice=0):
    """A function that lets it run, once, and returns the instant at which it began. What its start
    costs is over before."""
    waiting = subprocess.Popen([measure.program("pattern")] + words, start_new_session=True,
                               preexec_fn=lambda: os.nice(nice))
    waiting.send_signal(signal.SIGSTOP)

    def begin():
        began = time.monotonic()
        waiting.send_signal(signal.SIGCONT)
        return began

    try:
        yield begin
    finally:
        waiting.kill()
        waiting.wait()


def light(report, seconds, settings):
    """A program that uses 20 % of a core."""
    with harness.Pool() as pool:
        told = start(pool, settings)
        tenants = measure.Tenants(pool, told, "leave")
        with stopped_program(["light"]) as begin:
            pid = tenants.start()
            time.sleep(SETTLE_SECONDS)
            began = begin()
            with contextlib.suppress(harness.Timeout):
                harness.wait_for(lambda: not harness.alive(pid), "the job's end", seconds)
            unnoticed = time.monotonic() - began
            evicted = not harness.alive(pid)
        tenants.end()
        told.close()
    if evicted:
        raise measure.Unmeasurable("a program below the threshold evicted a job after %.1f s" %
                                   unnoticed)
    report.add("light_unnoticed", unnoticed, "s")
