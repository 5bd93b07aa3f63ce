/* A job of one kind, each process of which stamps the instant at which it last ran.
 *
 * usage: bench-tenant SOCKET STAMPS KIND
 *
 * STAMPS is a file of the struct below that any user may write to. When all processes of the job
 * run, it sends "start" (datagram.h).
 *
 *   save      computes; when asked to leave, saves 22 kB through the checkpoint API
 * and, all of which ignore the request to leave:
 *   deaf      uses all the CPU time that it gets
 *   fork      starts processes without end, every second one in a session of its own
 *   allocate  touches new memory without end, and gives back what is more than 128 MiB
 *   write     writes to stdout and to a file of its own without end
 *   many      500 processes: every second one is deaf, the others sleep 5 ms again and again */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/datagram.h"
#include "checkpoint-api/sublet_checkpoint.h"

struct stamps {
  _Atomic int64_t last_ran;
  int64_t save_began, save_ended; /* of the last save */
};

enum {
  DOUBLES = 2750, /* 22 kB */
  STEP_NS = 20000,
  MANY = 500,
  NAP_NS = 5000000,
  MOST_CHILDREN = 64,
  CHILD_NS = 1000000,
  BLOCK = 4 << 20,
  BLOCKS = 32,
  WRITTEN = 64 << 10,
  LONGEST_FILE = 16 << 20
};

static struct stamps* stamps;

/* The latest of all processes wins, whichever writes last. */
static int64_t stamp(void) {
  const int64_t now = now_ns();
  int64_t last = atomic_load_explicit(&stamps->last_ran, memory_order_relaxed);
  while (last < now && !atomic_compare_exchange_weak(&stamps->last_ran, &last, now)) {
  }
  return now;
}

static void compute_until(int64_t end_ns) {
  while (stamp() < end_ns) {
  }
}

static int save(const char* socket) {
  static double state[DOUBLES];
  struct sublet_checkpoint_options options = {NULL, SUBLET_CHECKPOINT_NEVER, 1};
  struct sublet_checkpoint* c = sublet_checkpoint_open("bench", 1);
  if (!c || sublet_checkpoint_variable(c, "state", state, DOUBLES, SUBLET_FLOAT64) != 0 ||
      sublet_checkpoint_start(c, &options) == SUBLET_REFUSED)
    return 1;
  tell(socket, "start", stamp());
  for (;;) {
    compute_until(now_ns() + STEP_NS);
    state[0] += 1;
    const int64_t began = stamp();
    if (sublet_checkpoint_point(c) != SUBLET_LEAVE) continue;
    stamps->save_began = began;
    stamps->save_ended = stamp();
    return SUBLET_EXIT_LEFT;
  }
}

static void deaf(void) {
  for (;;) stamp();
}

static void fork_on(const char* socket) {
  int told = 0;
  for (int64_t children = 0, started = 0;; ++started) {
    while (children > 0 && waitpid(-1, NULL, children < MOST_CHILDREN ? WNOHANG : 0) > 0)
      --children;
    const pid_t child = fork();
    if (child == 0) {
      if (started % 2) setsid();
      compute_until(now_ns() + CHILD_NS);
      _exit(0);
    }
    children += child > 0;
    stamp();
    if (!told && (told = children >= 8)) tell(socket, "start", now_ns());
  }
}

static void allocate(const char* socket) {
  char* blocks[BLOCKS] = {0};
  for (size_t i = 0;; ++i) {
    char** block = &blocks[i % BLOCKS];
    if (*block) munmap(*block, BLOCK);
    *block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*block == MAP_FAILED) _exit(1);
    for (size_t at = 0; at < BLOCK; at += 4096) {
      (*block)[at] = 1;
      stamp();
    }
    if (i == BLOCKS) tell(socket, "start", now_ns());
  }
}

static void write_on(const char* socket) {
  static char bytes[WRITTEN];
  memset(bytes, 'x', sizeof bytes);
  const int file = open("written", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  off_t size = 0;
  for (long i = 0;; ++i) {
    if (write(1, bytes, sizeof bytes) < 0) _exit(1);
    stamp();
    if (pwrite(file, bytes, sizeof bytes, size) < 0) _exit(1);
    size = (size + WRITTEN) % LONGEST_FILE;
    stamp();
    if (i == 16) tell(socket, "start", now_ns());
  }
}

/* They wait for each other: beside so many that compute, the last would be started late. */
static void many(const char* socket) {
  int go[2];
  char none;
  if (pipe(go) != 0) _exit(1);
  for (int i = 1; i < MANY; ++i) {
    const pid_t child = fork();
    if (child < 0) _exit(1);
    if (child > 0) continue;
    close(go[1]);
    if (read(go[0], &none, 1) != 0) _exit(1);
    while (i % 2) stamp();
    for (const struct timespec nap = {0, NAP_NS};; nanosleep(&nap, NULL)) stamp();
  }
  tell(socket, "start", stamp());
  close(go[1]);
  deaf();
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fputs("usage: bench-tenant SOCKET STAMPS save|deaf|fork|allocate|write|many\n", stderr);
    return 2;
  }
  const char *socket = argv[1], *kind = argv[3];
  const int file = open(argv[2], O_RDWR | O_CLOEXEC);
  stamps = file < 0 ? MAP_FAILED
                    : mmap(NULL, sizeof *stamps, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (stamps == MAP_FAILED) return 1;
  if (!strcmp(kind, "save")) return save(socket);
  signal(SIGTERM, SIG_IGN);
  if (!strcmp(kind, "fork")) fork_on(socket);
  if (!strcmp(kind, "allocate")) allocate(socket);
  if (!strcmp(kind, "write")) write_on(socket);
  if (!strcmp(kind, "many")) many(socket);
  if (strcmp(kind, "deaf")) return 2;
  tell(socket, "start", stamp());
  deaf();
}
