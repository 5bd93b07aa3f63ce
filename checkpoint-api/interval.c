#include "checkpoint-api/interval.h"

/* A save that takes longer than a day counts as one of a day: the products stay below 2^64. */
static const uint64_t most_cost_us = UINT64_C(86400) * 1000000;

static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Rounded down. Bit by bit, since the library of mathematics is not linked. */
static uint64_t square_root(uint64_t square) {
  uint64_t root = 0;
  for (uint64_t bit = UINT64_C(1) << 31; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= square) root += bit;
  }
  return root;
}

void sublet_add_save(struct sublet_save_costs* costs, uint64_t took_us, int periodic) {
  took_us = least_of(most_of(took_us, 1), most_cost_us);
  costs->one_us = costs->one_us == 0 ? took_us : (3 * costs->one_us + took_us) / 4;
  if (periodic) costs->spent_us += took_us;
}

uint64_t sublet_next_save_ms(const struct sublet_save_costs* costs, uint64_t elapsed_ms,
                             uint64_t mean_idle_s) {
  if (costs->one_us == 0) return SUBLET_INTERVAL_LEAST_MS;
  mean_idle_s = least_of(most_of(mean_idle_s, 1), SUBLET_MEAN_IDLE_MOST_S);
  /* us * s = (ms)^2 */
  const uint64_t best_ms = square_root(2 * costs->one_us * mean_idle_s);
  const uint64_t bounded_ms =
      most_of(least_of(best_ms, SUBLET_INTERVAL_MOST_MS), SUBLET_INTERVAL_LEAST_MS);
  /* When the next one has been made, all of them have taken their part at most. */
  const uint64_t run_ms = SUBLET_INTERVAL_COSTS * (costs->spent_us + costs->one_us) / 1000;
  return most_of(bounded_ms, run_ms > elapsed_ms ? run_ms - elapsed_ms : 0);
}

uint64_t sublet_put_off_first_ms(uint64_t bytes, uint64_t elapsed_ms) {
  const uint64_t cost_us = least_of(bytes / SUBLET_FIRST_BYTES_PER_US, most_cost_us);
  const uint64_t run_ms = SUBLET_INTERVAL_COSTS * cost_us / 1000;
  return run_ms > elapsed_ms ? run_ms - elapsed_ms : 0;
}
