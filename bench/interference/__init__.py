"""How much the owner's programs are slowed down by tenants, and by what is done for them.

A loop of the owner's (bench-owners-loop) does the same piece of work again and again: `compute`;
`wake`, the same after a sleep of 1 ms; `memory`, copies of more than a core's own cache holds. It
runs on one core; `each_core` is `compute` on every core. Short windows take turns: alone, alone
once more, and beside a scene. SCENE_LOOP_p50 and _p99: that quantile of the pieces of work beside
the scene, divided by the same of those alone. Their limit is the control: the two kinds of windows
alone against each other, the larger divided by the smaller. _max: the longest piece, its limit the
longest alone. _late_p99: how late the sleeping program woke, its limit the same alone.

spinners, memory, output: a job on each core that computes, streams through 128 MB, or writes to its
stdout without end. staging: an input of 1 GB for each core is brought. delivery: the job has left
it as its output, which is checked and sent. eviction: spinners start, and the owner comes back,
again and again. removal: a job that left 100,000 empty files is removed. By the monitor's control
file the owner is away, whatever the loop uses. The server, which is on another machine as a rule,
stays off the core of the loop.

The budget is for spinners: p50 at most 1.01, p99 at most 1.05, or the control if that is more;
beyond it the exit status is 1. --only SCENE: only that one; delivery belongs to staging."""

import harness
import measure
from interference import loops, scenes

SCENES = {scene.NAME: scene for scene in (
    scenes.Spinners, scenes.Memory, scenes.Output, scenes.Staging, scenes.Eviction,
    scenes.Removal)}
PARTS = list(SCENES)


def run(report, quick, only=None):
    missed = []
    for name in only or PARTS:
        kind = SCENES[name]
        with harness.Pool() as pool, scenes.Workstation(pool, kind.SLOTS) as here:
            scene = kind(here, quick)
            for loop, count in scene.LOOPS.items():
                found = compare(scene, loop, count, quick)
                missed += loops.tell(report, scene, loop, found)
    if missed and not quick:
        raise measure.Missed("beyond the budget: " + ", ".join(missed))


def compare(scene, loop, count, quick):
    """The owner's pieces of work, by the name of the window: alone, control, and the scene's."""
    kind = "compute" if loop == "each_core" else loop
    found = loops.Pieces()
    with loops.Loops(kind, count) as owner:
        for turn in range(1 if quick else scene.ROUNDS):
            scene.prepare()
            # Whatever one kind of windows leaves behind, both have it in turn.
            for name in ("alone", "control") if turn % 2 else ("control", "alone"):
                found.add(name, owner.during(scene.pause))
            scene.begin()
            for name, act in scene.phases().items():
                found.add(name, owner.during(act))
            scene.clean()
    return found
