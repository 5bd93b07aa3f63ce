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
`sound` is seen with the next sample of the monitor, here every 100 ms, which its budget contains."""

from owner import evictions, patterns, senses, steps

ROUNDS = 504  # of each sense: each kind as often, as often beside busy programs
SAMPLED_ROUNDS = 24
SENSES = {kind.NAME: kind for kind in senses.EVENT_DRIVEN}
SAMPLED = {kind.NAME: kind for kind in senses.SAMPLED}
PARTS = [*SENSES, *SAMPLED, "control", "steps", "patterns"]


def run(report, quick, only=None):
    parts = only or PARTS
    rounds = 2 if quick else ROUNDS
    evicted = []
    chosen = [kind for name, kind in SENSES.items() if name in parts]
    if chosen:
        evicted += evictions.by_senses(rounds, chosen)
    if "control" in parts:
        evicted += evictions.by_control(rounds)
    evictions.tell(report, evicted)
    sampled = [kind for name, kind in SAMPLED.items() if name in parts]
    if sampled:
        evictions.tell_sampled(report, evictions.by_senses(2 if quick else SAMPLED_ROUNDS, sampled))
    if "steps" in parts:
        steps.run(report, quick)
    if "patterns" in parts:
        patterns.run(report, quick)
