/* What a point costs while nothing is asked for: in a loop, inlined and called as an ordinary
 * function, and the same loop without it. The fastest of ROUNDS rounds of each.
 *
 * usage: bench-point ROUNDS
 *
 * Prints {"loop_ns", "point_ns", "call_ns"}, for one pass through the loop. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint-api/sublet_checkpoint.h"

enum { kPasses = 5000000 };

static double now_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

/* The fastest so far; `statement` is what the loop does beside the work that a compiler
 * must assume where the empty assembler statement stands. */
#define ROUND(best, statement)                        \
  do {                                                \
    const double began = now_ns();                    \
    for (int pass = 0; pass < kPasses; ++pass) {      \
      __asm__ volatile("" ::: "memory");              \
      statement;                                      \
    }                                                 \
    const double took = (now_ns() - began) / kPasses; \
    if (took < best) best = took;                     \
  } while (0)

int main(int argc, char** argv) {
  if (argc != 2) {
    fputs("usage: bench-point ROUNDS\n", stderr);
    return 2;
  }
  char path[64];
  snprintf(path, sizeof path, "/tmp/sublet-bench-point-%ld", (long)getpid());
  const struct sublet_checkpoint_options options = {path, 0, 0};
  struct sublet_checkpoint* c = sublet_checkpoint_open("bench", 1);
  if (c == NULL || sublet_checkpoint_start(c, &options) == SUBLET_REFUSED) return 1;
  int (*volatile called)(struct sublet_checkpoint*) = sublet_checkpoint_point;
  double loop = 1e9, point = 1e9, call = 1e9;
  for (int round = 0; round < atoi(argv[1]); ++round) {
    ROUND(loop, (void)0);
    ROUND(point, sublet_checkpoint_point(c));
    ROUND(call, called(c));
  }
  printf("{\"loop_ns\": %.3f, \"point_ns\": %.3f, \"call_ns\": %.3f}\n", loop, point, call);
  sublet_checkpoint_finish(c);
  sublet_checkpoint_close(c);
  return 0;
}
