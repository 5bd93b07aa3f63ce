/* How long a program's own save and restore take: DOUBLES doubles, saved COUNT times through
 * the checkpoint API, synced each time, and read back at most 20 times.
 *
 * usage: bench-save FILE DOUBLES COUNT
 *
 * Prints {"p50", "p99", "restored_p50"} in seconds. */
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

static struct sublet_checkpoint* named(double* state, size_t doubles) {
  struct sublet_checkpoint* c = sublet_checkpoint_open("bench", 1);
  if (c != NULL && sublet_checkpoint_variable(c, "state", state, doubles, SUBLET_FLOAT64) == 0)
    return c;
  fputs("bench-save: cannot name the state\n", stderr);
  exit(1);
}

static void saves(const struct sublet_checkpoint_options* options, double* state, size_t doubles,
                  double* took, size_t count) {
  struct sublet_checkpoint* c = named(state, doubles);
  if (sublet_checkpoint_start(c, options) == SUBLET_REFUSED) exit(1);
  for (size_t i = 0; i < count; ++i) {
    state[i % doubles] += 1;
    const double began = now();
    if (sublet_checkpoint_save(c) != 0) {
      fprintf(stderr, "bench-save: %s\n", sublet_checkpoint_message(c));
      exit(1);
    }
    took[i] = now() - began;
  }
  sublet_checkpoint_close(c);
  qsort(took, count, sizeof *took, by_size);
}

static void restores(const struct sublet_checkpoint_options* options, double* state, size_t doubles,
                     double* took, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    struct sublet_checkpoint* c = named(state, doubles);
    const double began = now();
    if (sublet_checkpoint_start(c, options) != SUBLET_RESUMED) {
      fputs("bench-save: what was saved is not resumed\n", stderr);
      exit(1);
    }
    took[i] = now() - began;
    sublet_checkpoint_close(c);
  }
  qsort(took, count, sizeof *took, by_size);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fputs("usage: bench-save FILE DOUBLES COUNT\n", stderr);
    return 2;
  }
  const size_t doubles = (size_t)atol(argv[2]), count = (size_t)atol(argv[3]);
  double* state = calloc(doubles, sizeof *state);
  double* took = calloc(count, sizeof *took);
  const struct sublet_checkpoint_options options = {argv[1], SUBLET_CHECKPOINT_NEVER, 0};
  if (!state || !took || count == 0) return 1;
  for (size_t i = 0; i < doubles; ++i) state[i] = 1.0 / (double)(i + 1);
  saves(&options, state, doubles, took, count);
  printf("{\"p50\": %.9f, \"p99\": %.9f, ", took[count / 2], took[count * 99 / 100]);
  const size_t restored = count < 20 ? count : 20;
  restores(&options, state, doubles, took, restored);
  printf("\"restored_p50\": %.9f}\n", took[restored / 2]);
  free(state);
  free(took);
  return 0;
}
