/* How long until the next periodic save, where the program and its user have not said it. Pure.
 * Python has the same in python/sublet/_interval.py. */
#ifndef SUBLET_CHECKPOINT_API_INTERVAL_H_
#define SUBLET_CHECKPOINT_API_INTERVAL_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SUBLET_INTERVAL_LEAST_MS = 30000,  /* the server gets a new generation no more often, either */
  SUBLET_INTERVAL_MOST_MS = 600000,  /* bounds the work at risk */
  SUBLET_INTERVAL_COSTS = 100,       /* periodic saves take at most one part in so many */
  SUBLET_FIRST_BYTES_PER_US = 100,   /* assumed of the first one: a hard disk's rate */
  SUBLET_MEAN_IDLE_DEFAULT_S = 7200, /* where nobody says it */
  SUBLET_MEAN_IDLE_MOST_S = 10000000
};

struct sublet_save_costs {
  uint64_t one_us;   /* of one save: a moving average, newest one fourth; 0: none yet */
  uint64_t spent_us; /* on periodic saves, since the program started */
};

/* A save, also one that failed, took so long. */
void sublet_add_save(struct sublet_save_costs* costs, uint64_t took_us, int periodic);

/* From now on, in ms. `elapsed_ms`: since the program started. `mean_idle_s`: the mean time from
 * when a machine becomes idle until its owner is back; 0 counts as 1, more than
 * SUBLET_MEAN_IDLE_MOST_S as that.
 *
 * The square root of 2 * cost * mean time between interruptions (Young, "A first order
 * approximation to the optimum checkpoint interval", 1974; Daly, "A higher order estimate of the
 * optimum checkpoint interval for restart dumps", 2006, whose further terms matter only where a
 * save takes a large part of that time), within the bounds above; but longer if the saves would
 * take more than their part of the run. */
uint64_t sublet_next_save_ms(const struct sublet_save_costs* costs, uint64_t elapsed_ms,
                             uint64_t mean_idle_s);

/* For how long to put off the first periodic save, of about so many bytes, in ms; 0: not. At the
 * rate above it takes no more than its part of the run then. */
uint64_t sublet_put_off_first_ms(uint64_t bytes, uint64_t elapsed_ms);

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_CHECKPOINT_API_INTERVAL_H_ */
