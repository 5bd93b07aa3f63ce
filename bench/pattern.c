/* A program of the owner's that uses the CPU in a pattern, until it is ended.
 *
 * usage: bench-pattern steady|on-off|between-ticks|light|short
 *
 *   steady         a core
 *   on-off         5 ms of computing, 5 ms of sleep
 *   between-ticks  1 ms bursts, 0.5 ms apart, asleep whenever the kernel's clock ticks
 *   light          2 ms of computing, 8 ms of sleep: 20 % of a core
 *   short          a process after the other, each of which computes for 2 ms */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000 };

static int64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void compute(int64_t ns) {
  const int64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
  while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

static void nap(int64_t ns) {
  const struct timespec time = {0, ns};
  nanosleep(&time, NULL);
}

static void alternate(int64_t computed_ns, int64_t slept_ns) {
  for (;;) {
    compute(computed_ns);
    nap(slept_ns);
  }
}

/* The coarse clock changes at a tick. */
static int64_t tick_ns(void) {
  struct timespec step;
  clock_getres(CLOCK_MONOTONIC_COARSE, &step);
  return step.tv_nsec;
}

/* Looks for the tick again now and then, since it drifts. */
static void between_ticks(void) {
  enum { ROUNDS = 100 };
  const int64_t tick = tick_ns();
  for (;;) {
    const int64_t coarse = read_clock(CLOCK_MONOTONIC_COARSE);
    while (read_clock(CLOCK_MONOTONIC_COARSE) == coarse) {
    }
    int64_t at = read_clock(CLOCK_MONOTONIC);
    for (int round = 0; round < ROUNDS; ++round, at += tick) {
      while (read_clock(CLOCK_MONOTONIC) + 3 * MS / 2 < at + tick) {
        compute(MS);
        nap(MS / 2);
      }
      const int64_t wake = at + tick + MS / 5;
      const struct timespec until = {wake / 1000000000, wake % 1000000000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
  }
}

static void short_ones(void) {
  for (;;) {
    const pid_t child = fork();
    if (child == 0) {
      compute(2 * MS);
      _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) < 0) _exit(1);
  }
}

int main(int argc, char** argv) {
  const char* pattern = argc == 2 ? argv[1] : "";
  if (!strcmp(pattern, "steady")) compute(INT64_MAX / 2);
  if (!strcmp(pattern, "on-off")) alternate(5 * MS, 5 * MS);
  if (!strcmp(pattern, "between-ticks")) between_ticks();
  if (!strcmp(pattern, "light")) alternate(2 * MS, 8 * MS);
  if (!strcmp(pattern, "short")) short_ones();
  fputs("usage: bench-pattern steady|on-off|between-ticks|light|short\n", stderr);
  return 2;
}
