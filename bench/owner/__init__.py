"""How soon the owner has the machine back, and how soon the owner's load is detected.

Evictions by each sense, and by the control file as the reference (evictions.py), of each kind of
job (bench-tenant), half of the time beside busy programs of the owner's, two on each core:
SENSE_stopped and KIND_stopped: from the instant just before the event at the sense until the last
instant at which any process of the job runs, less the save of a job that saves; _gone: until
there are none. key: a key at a pseudo-terminal. device: an event of an input device. x11, sway: a
key in a desktop.
Steps (steps.py), the event at the monitor's control file. told: the job receives the signal to
leave (until then it has minimal CPU weight; while it saves, its CPU allowance applies). gone: a
job with nothing to save has exited. orphan_gone: from the death of the shepherd of a job that
ignores the request until the job has ended, beside the same programs. The limit is a bare signal,
from sending it until its handler runs.
The owner's CPU use (patterns.py). PATTERN_told: from the start of a program of the owner's until
the job is told to leave; the limit is one sampling period. PATTERN_unnoticed: for so long a
program below the threshold did not evict.

--only NAME: only the evictions by the sense of that name, or `control`, `steps` or `patterns`.
Few evictions are by `sound` and a `full_screen` program, which count with the next sample of the
monitor (here every 100 ms, which their budget contains), and by logind's word of a `login`, a
screen that is kept on or `sleep`. The logind is played by a slow program, whose time counts as the
event's: its _stopped has no budget, and _left counts from where the monitor knew."""

import sys

from owner import evictions, logind, patterns, senses, steps

ROUNDS = 504  # of each sense: each kind as often, as often beside busy programs
MANY = (senses.Key, senses.Device, senses.X11, senses.Sway, senses.Word, senses.Camera)
FEW_ROUNDS = 24
FEW = (senses.Sound, senses.FullScreen, logind.Login, logind.ScreenKeptOn, logind.Sleep)
PARTS = [*(hand.NAME for hand in MANY + FEW), "control", "steps", "patterns"]


def installed(hands):
    """Those of them for which everything is installed; tells what is missing."""
    found = []
    for hand in hands:
        missing = hand.missing()
        if missing:
            print("bench: owner: %s is left out: %s is not installed" % (hand.NAME, missing),
                  file=sys.stderr)
        else:
            found.append(hand)
    return found


def run(report, quick, only=None):
    parts = only or PARTS
    evicted = []
    many = installed(hand for hand in MANY if hand.NAME in parts)
    if many:
        evicted += evictions.by_senses(2 if quick else ROUNDS, many)
    if "control" in parts:
        evicted += evictions.by_control(2 if quick else ROUNDS)
    evictions.tell(report, evicted)
    few = installed(hand for hand in FEW if hand.NAME in parts)
    if few:
        evicted = evictions.by_senses(2 if quick else FEW_ROUNDS, few)
        for hand in few:
            evictions.tell_few(report, hand, [e for e in evicted if e.sense == hand.NAME])
    if "steps" in parts:
        steps.run(report, quick)
    if "patterns" in parts:
        patterns.run(report, quick)
