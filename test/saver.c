/* A job for the tests: counts in steps of a millisecond, saves its count when asked, which
 * takes SAVE_MS of CPU time, and resumes from it.
 *
 * usage: saver FOLDER SAVE_MS nap|spin
 *
 * Each step sleeps, or uses a millisecond of CPU time. It appends lines "start|save|done
 * ATTEMPT COUNT" to FOLDER/ledger, which every user may append to. It ends when
 * FOLDER/finish exists, and writes its count to the file "out". */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint-api/sublet_checkpoint.h"

static const char* folder;
static long save_ms;
static uint64_t count;

static void tell(const char* what) {
  char path[4096], line[128];
  const char* attempt = getenv("SUBLET_ATTEMPT");
  snprintf(path, sizeof path, "%s/ledger", folder);
  int length = snprintf(line, sizeof line, "%s %s %llu\n", what, attempt ? attempt : "0",
                        (unsigned long long)count);
  int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0 || write(fd, line, (size_t)length) != length) exit(1);
  close(fd);
}

static void burn_us(long us) {
  struct timespec from, now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
  do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

static int save(struct sublet_checkpoint_stream* stream, void* user) {
  (void)user;
  burn_us(save_ms * 1000);
  tell("save");
  return sublet_checkpoint_write_u64(stream, count);
}

static int restore(struct sublet_checkpoint_stream* stream, void* user) {
  (void)user;
  return sublet_checkpoint_read_u64(stream, &count);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fputs("usage: saver FOLDER SAVE_MS nap|spin\n", stderr);
    return 2;
  }
  folder = argv[1];
  save_ms = atol(argv[2]);
  int spins = !strcmp(argv[3], "spin");
  char finish[4096];
  snprintf(finish, sizeof finish, "%s/finish", folder);

  struct sublet_checkpoint_options options = {NULL, SUBLET_CHECKPOINT_NEVER, 0};
  struct sublet_checkpoint* c = sublet_checkpoint_open("saver", 1);
  if (!c || sublet_checkpoint_callbacks(c, "count", save, restore, NULL) != 0 ||
      sublet_checkpoint_start(c, &options) == SUBLET_REFUSED)
    return 1;
  tell("start");
  while (access(finish, F_OK) != 0) {
    if (spins)
      burn_us(1000);
    else
      usleep(1000);
    ++count;
    sublet_checkpoint_progress(c, count % 1000000, 1000000);
    sublet_checkpoint_point(c);
  }
  tell("done");
  FILE* out = fopen("out", "w");
  if (!out || fprintf(out, "%llu\n", (unsigned long long)count) < 0 || fclose(out) != 0) return 1;
  sublet_checkpoint_finish(c);
  sublet_checkpoint_close(c);
  return 0;
}
