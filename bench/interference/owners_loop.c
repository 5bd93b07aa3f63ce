/* A program of the owner's that does the same piece of work again and again, and notes how long
 * each takes.
 *
 * usage: bench-owners-loop compute|wake|memory
 *
 *   compute  1.5 ms of computing in registers
 *   wake     the same, each time after a sleep of 1 ms
 *   memory   copies 8 MB eight times, more than a core's own cache holds
 *
 * A line on stdin begins a window, the next one ends it. For each window it prints
 * {"took": [...], "late": [...]} in seconds, one of each per piece. took: until the piece was done,
 * from its start, or, of wake, from the instant at which the sleep should have ended. late: how
 * late the program woke; only of wake. */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  MOST = 1 << 20,
  PIECE_NS = 1500000,
  SLEEP_NS = 1000000,
  COPIED = 8 << 20,
  COPIES = 8,
  TRIES = 50
};

static struct { int64_t took, late; } samples[MOST];
static size_t count;

static volatile uint64_t computed;
static char *from, *to;
static long steps = 100000; /* of a piece of computing */

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void compute(void) {
  uint64_t x = 88172645463325252;
  for (long i = 0; i < steps; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  computed = x;
}

static void copy(void) {
  for (int i = 0; i < COPIES; ++i) {
    memcpy(to, from, COPIED);
    from[to[i] & 0xff] ^= 1; /* or the compiler would copy once */
  }
}

/* The fastest of several tries: other programs of the machine only make it slower. */
static void choose_steps(void) {
  int64_t fastest = INT64_MAX;
  for (int i = 0; i < TRIES; ++i) {
    const int64_t began = now_ns();
    compute();
    const int64_t took = now_ns() - began;
    if (took < fastest) fastest = took;
  }
  steps = (long)((double)steps * PIECE_NS / (double)fastest);
}

static void sleep_until(int64_t ns) {
  const struct timespec at = {ns / 1000000000, ns % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static int line_waits(void) {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) != 0;
}

/* At least one piece: on a busy machine the line that ends it may be there at once. */
static void window(void (*piece)(void), int sleeps) {
  count = 0;
  do {
    int64_t due = now_ns(), late = 0;
    if (sleeps) {
      due += SLEEP_NS;
      sleep_until(due);
      late = now_ns() - due;
    }
    piece();
    const int64_t took = now_ns() - due;
    if (count == MOST) continue;
    samples[count].took = took;
    samples[count++].late = late;
  } while (!line_waits());
}

static void print(int with_late) {
  printf("{\"took\": [");
  for (size_t i = 0; i < count; ++i) printf("%s%.9f", i ? ", " : "", (double)samples[i].took / 1e9);
  printf("], \"late\": [");
  for (size_t i = 0; with_late && i < count; ++i)
    printf("%s%.9f", i ? ", " : "", (double)samples[i].late / 1e9);
  puts("]}");
  fflush(stdout);
}

int main(int argc, char** argv) {
  const char* kind = argc == 2 ? argv[1] : "";
  const int sleeps = !strcmp(kind, "wake"), copies = !strcmp(kind, "memory");
  if (!sleeps && !copies && strcmp(kind, "compute")) {
    fputs("usage: bench-owners-loop compute|wake|memory\n", stderr);
    return 2;
  }
  from = malloc(COPIED);
  to = malloc(COPIED);
  if (!from || !to) return 1;
  memset(from, 'f', COPIED);
  memset(to, 't', COPIED);
  memset(samples, 0, sizeof samples); /* no page of them is new within a window */
  choose_steps();
  char line; /* alone: both may be there already */
  while (read(STDIN_FILENO, &line, 1) > 0) {
    window(copies ? copy : compute, sleeps);
    if (read(STDIN_FILENO, &line, 1) <= 0) return 1;
    print(sleeps);
  }
  return 0;
}
