/* Uses half a core, but sleeps whenever the kernel's clock ticks, so that CPU time that is sampled
 * at ticks does not show it. Runs until it is killed. */
#include <time.h>

static long long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000ll + time.tv_nsec;
}

/* The coarse clock advances at each tick. */
static long long next_tick(void) {
  const long long before = now(CLOCK_MONOTONIC_COARSE);
  while (now(CLOCK_MONOTONIC_COARSE) == before) {
  }
  return now(CLOCK_MONOTONIC);
}

int main(void) {
  enum { kRounds = 100 }; /* until the tick is looked for again, since it drifts */
  struct timespec resolution;
  clock_getres(CLOCK_MONOTONIC_COARSE, &resolution);
  const long long period = resolution.tv_nsec;
  for (;;) {
    long long tick = next_tick();
    for (int round = 0; round < kRounds; ++round) {
      while (now(CLOCK_MONOTONIC) < tick + period * 6 / 10) {
      }
      tick += period;
      const long long start = tick + period / 10;
      const struct timespec until = {start / 1000000000, start % 1000000000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
    }
  }
}
