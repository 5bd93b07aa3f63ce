"""How long until the next periodic save, where the program and its user have not said it: the same
as checkpoint-api/interval.h, which says more."""

import math

LEAST_MS, MOST_MS = 30000, 600000
COSTS = 100  # periodic saves take at most one part in so many of the run
MEAN_IDLE_S, MOST_MEAN_IDLE_S = 7200, 10000000
_MOST_COST_US = 86400 * 1000000
_FIRST_BYTES_PER_US = 100


class Costs:
    """What saves take, in microseconds. one: of one, a moving average; 0: none yet. spent: on
    periodic saves, since the program started."""

    def __init__(self, one=0, spent=0):
        self.one = one
        self.spent = spent

    def add(self, took, periodic):
        took = min(max(took, 1), _MOST_COST_US)
        self.one = took if self.one == 0 else (3 * self.one + took) // 4
        if periodic:
            self.spent += took


def next_save_ms(costs, elapsed_ms, mean_idle_s):
    """From now on; `elapsed_ms` since the program started."""
    if costs.one == 0:
        return LEAST_MS
    best = math.isqrt(2 * costs.one * min(max(mean_idle_s, 1), MOST_MEAN_IDLE_S))
    run = COSTS * (costs.spent + costs.one) // 1000
    return max(min(best, MOST_MS), LEAST_MS, run - elapsed_ms)


def put_off_first_ms(size, elapsed_ms):
    """For how long to put off the first periodic save, of about so many bytes; 0: not."""
    run = COSTS * min(size // _FIRST_BYTES_PER_US, _MOST_COST_US) // 1000
    return max(run - elapsed_ms, 0)
