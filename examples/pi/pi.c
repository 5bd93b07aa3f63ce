/* pi.c: 4 - 4/3 + 4/5 - 4/7 ..., on any idle machine */
#include <stdio.h>

#include "checkpoint-api/sublet_checkpoint.h"

int main(void) {
  double sum = 0;
  uint64_t i = 0, last = 1000000000;
  struct sublet_checkpoint* c = sublet_checkpoint_open("pi", 1);
  sublet_checkpoint_variable(c, "sum", &sum, 1, SUBLET_FLOAT64);
  sublet_checkpoint_variable(c, "i", &i, 1, SUBLET_UINT64);
  if (sublet_checkpoint_start(c, NULL) < 0) return 1; /* the reason is on stderr */
  printf("starting at term %.0f\n", (double)i);
  fflush(stdout); /* so that `sublet logs` shows it at once */
  while (i < last) {
    sum += (i % 2 ? -4.0 : 4.0) / (2 * i + 1);
    ++i;
    sublet_checkpoint_progress(c, i, last);
    sublet_checkpoint_point(c); /* sum and i are consistent here: a safe point */
  }
  printf("pi is about %.8f\n", sum);
  sublet_checkpoint_finish(c);
  sublet_checkpoint_close(c);
}
