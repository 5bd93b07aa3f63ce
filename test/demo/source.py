"""The published figures of the original cycle-stealing system, table by table, which
./demo prints beside its own."""

import collections

# T4.1: epochs -> correctness on training and test set, interrupted in the
# system and undisturbed on one processor.
Correctness = collections.namedtuple("Correctness", "pool alone")
T4_1 = {
    7: Correctness((0.730, 0.705), (0.730, 0.705)),
    8: Correctness((0.742, 0.711), (0.742, 0.711)),
    10: Correctness((0.758, 0.709), (0.758, 0.709)),
    12: Correctness((0.769, 0.749), (0.769, 0.749)),
    18: Correctness((0.787, 0.768), (0.787, 0.768)),
    20: Correctness((0.791, 0.766), (0.791, 0.766)),
    22: Correctness((0.796, 0.754), (0.796, 0.754)),
    24: Correctness((0.798, 0.776), (0.798, 0.776)),
}

# T4.2: epochs -> seconds from each interrupt until the process had left.
T4_2 = {
    7: [40, 15],
    8: [8],
    10: [24, 27],
    12: [25, 8, 8, 55, 20],
    18: [33, 39, 13, 6, 9],
    20: [35, 42, 45, 5, 4],
    22: [58, 37, 9, 7, 55],
    24: [19, 61, 52, 4, 2],
}

# T4.3: epochs -> interruptions, average bytes of a checkpoint; and, from the text,
# the sizes of Condor's checkpoints of the same jobs, in MB.
Checkpoints = collections.namedtuple("Checkpoints", "interruptions size")
T4_3 = {
    7: Checkpoints(2, 21840.5),
    8: Checkpoints(1, 21811),
    10: Checkpoints(2, 21834.5),
    12: Checkpoints(7, 21847.5),
    18: Checkpoints(5, 21888.2),
    20: Checkpoints(11, 21878.3),
    22: Checkpoints(10, 21873.3),
    24: Checkpoints(11, 21876.1),
}
T4_3_AVERAGE_KB = 21.85
T4_3_CONDOR_MB = 7.31
T4_3_CONDOR_MOST_MB = 10.20

# T4.4: machine -> (minute, load, state).
T4_4 = {
    "moe": [
        (0, 0.43, "idle"), (5, 0.71, "idle"), (10, 0.92, "idle"), (15, 0.85, "gets process"),
        (20, 1.59, "running"), (25, 2.17, "running"), (26, 2.28, "evacuates"),
        (28, 1.90, "migrated"), (32, 1.55, "decreasing"), (35, 1.36, "decreasing"),
        (40, 1.10, "decreasing"), (45, 0.97, "idle"), (50, 0.84, "idle"),
        (55, 0.84, "gets process"), (59, 1.48, "running"), (65, 1.90, "running"),
        (70, 2.25, "evacuates"), (71, 2.19, "migrated"), (75, 1.28, "decreasing"),
        (80, 0.81, "idle"),
    ],
    "curly": [
        (0, 0.089, "idle"), (5, 0.094, "idle"), (10, 0.092, "idle"),
        (15, 0.123, "gets process"), (20, 2.06, "running"), (25, 2.21, "running"),
        (30, 2.22, "running"), (33, 2.26, "running"), (34, 2.28, "evacuates"),
        (35, 2.13, "migrated"), (40, 0.85, "idle"), (45, 0.016, "idle"), (50, 0.036, "idle"),
        (52, 0.038, "gets process"), (59, 1.78, "running"), (65, 2.09, "running"),
        (70, 2.14, "running"), (74, 2.29, "evacuates"), (75, 1.93, "migrated"),
        (80, 1.33, "decreasing"),
    ],
}
T4_4_MINUTES = 80
IDLE_BELOW = 1.0
EVICT_ABOVE = 2.30
IDLE_MINUTES = 15
