/* How long a program's own save takes: DOUBLES doubles, as many as the letters network has,
 * saved COUNT times through the checkpoint API, synced each time.
 *
 * usage: bench-save FILE DOUBLES COUNT
 *
 * Prints {"p50", "p99"} in seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "checkpoint-api/sublet_checkpoint.h"

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static int by_size(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fputs("usage: bench-save FILE DOUBLES COUNT\n", stderr);
    return 2;
  }
  const size_t doubles = (size_t)atol(argv[2]), count = (size_t)atol(argv[3]);
  double* state = calloc(doubles, sizeof *state);
  double* took = calloc(count, sizeof *took);
  struct sublet_checkpoint_options options = {argv[1], SUBLET_CHECKPOINT_NEVER, 0};
  struct sublet_checkpoint* c = sublet_checkpoint_open("bench", 1);
  if (!state || !took || !c ||
      sublet_checkpoint_variable(c, "state", state, doubles, SUBLET_FLOAT64) != 0 ||
      sublet_checkpoint_start(c, &options) == SUBLET_REFUSED)
    return 1;
  for (size_t i = 0; i < count; ++i) {
    state[i % doubles] += 1;
    const double began = now();
    if (sublet_checkpoint_save(c) != 0) {
      fprintf(stderr, "bench-save: %s\n", sublet_checkpoint_message(c));
      return 1;
    }
    took[i] = now() - began;
  }
  qsort(took, count, sizeof *took, by_size);
  printf("{\"p50\": %.9f, \"p99\": %.9f}\n", took[count / 2], took[count * 99 / 100]);
  sublet_checkpoint_close(c);
  free(state);
  free(took);
  return 0;
}
