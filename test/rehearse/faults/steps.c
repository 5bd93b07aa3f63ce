// steps FAULT: fills a table step by step and prints its sum. Its state is saved by the checkpoint
// API. Each FAULT is a mistake that its author could have made; "none" is the corrected program.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "checkpoint-api/sublet_checkpoint.h"

enum { kSteps = 40, kCells = 8 };

static void work(int64_t* cells, uint64_t step) {
  const struct timespec pause = {0, 1000000};
  cells[step % kCells] += (int64_t)(step * step);
  nanosleep(&pause, NULL);
}

int main(int argc, char** argv) {
  const char* fault = argc > 1 ? argv[1] : "none";
  const int first_only = strcmp(fault, "first-element") == 0;
  const int skips = strcmp(fault, "step-skipped") == 0;
  const int prints = strcmp(fault, "prints-as-it-goes") == 0;
  const int other_status = strcmp(fault, "exit-status") == 0;
  int64_t cells[kCells] = {0};
  uint64_t step = 0;
  struct sublet_checkpoint* c = sublet_checkpoint_open("steps", 1);
  sublet_checkpoint_variable(c, "cells", cells, first_only ? 1 : kCells, SUBLET_INT64);
  sublet_checkpoint_variable(c, "step", &step, 1, SUBLET_UINT64);
  const int started = sublet_checkpoint_start(c, NULL);
  if (started < 0) return 1;
  while (step < kSteps) {
    const uint64_t now = step++;
    if (skips) sublet_checkpoint_point(c);  // counted, but not done
    work(cells, now);
    if (prints && now % 10 == 9) printf("%d steps\n", (int)step);
    if (!skips) sublet_checkpoint_point(c);
  }
  int64_t sum = 0;
  for (int i = 0; i < kCells; ++i) sum += (i + 1) * cells[i];
  printf("sum %lld\n", (long long)sum);
  sublet_checkpoint_finish(c);
  sublet_checkpoint_close(c);
  return other_status && started == SUBLET_RESUMED ? 3 : 0;
}
