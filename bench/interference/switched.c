/* A job that works only while a switch is on.
 *
 * usage: bench-switched SOCKET SWITCH spin|stream|output|link|litter [FILES]
 *
 * SWITCH is a file of one byte, not 0 while the switch is on. While it is off, the benchmark holds
 * an exclusive lock on the file: those who wait for it are never woken. When the job is ready it
 * sends "start" (datagram.h).
 *
 *   spin    computes
 *   stream  copies memory, more than the caches hold
 *   output  writes to stdout
 * and, each of which ends once the switch is on:
 *   link    leaves its input "data" as its output "copy"
 *   litter  leaves FILES empty files, made before it is ready. Empty, because a disk that is told
 * of each block that is free again makes who removes them wait, instead of compute */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/datagram.h"

enum {
  STREAMED = 64 << 20,
  STREAM_STEP = 1 << 20,
  WRITTEN = 16 << 10, /* at once, as `yes` does */
  PER_FOLDER = 1000
};

static int file;
static const volatile char* on;

static void await_on(void) {
  while (!*on) {
    flock(file, LOCK_SH);
    flock(file, LOCK_UN);
  }
}

static void spin(void) {
  for (;; await_on())
    while (*on) {
    }
}

static void stream(const char* socket) {
  char *from = malloc(STREAMED), *to = malloc(STREAMED);
  if (!from || !to) exit(1);
  memset(from, 'f', STREAMED);
  memset(to, 't', STREAMED);
  tell(socket, "start", now_ns());
  for (size_t at = 0;; at = (at + STREAM_STEP) % STREAMED) {
    if (!*on) await_on();
    memcpy(to + at, from + at, STREAM_STEP);
  }
}

static void output(void) {
  static char lines[WRITTEN];
  for (size_t i = 0; i < sizeof lines; ++i) lines[i] = i % 2 ? '\n' : 'y';
  for (;;) {
    if (!*on) await_on();
    if (write(STDOUT_FILENO, lines, sizeof lines) < 0) exit(1);
  }
}

static void litter(long files) {
  char name[64];
  for (long i = 0; i < files; ++i) {
    snprintf(name, sizeof name, "%ld", i / PER_FOLDER);
    if (i % PER_FOLDER == 0 && mkdir(name, 0700) != 0) exit(1);
    snprintf(name, sizeof name, "%ld/%ld", i / PER_FOLDER, i);
    const int made = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (made < 0) exit(1);
    close(made);
  }
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fputs("usage: bench-switched SOCKET SWITCH spin|stream|output|link|litter [FILES]\n", stderr);
    return 2;
  }
  const char *socket = argv[1], *kind = argv[3];
  file = open(argv[2], O_RDONLY | O_CLOEXEC);
  on = file < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
  if (on == MAP_FAILED) return 1;
  if (!strcmp(kind, "stream")) stream(socket);
  if (!strcmp(kind, "litter")) litter(argc == 5 ? atol(argv[4]) : 0);
  tell(socket, "start", now_ns());
  await_on();
  if (!strcmp(kind, "spin")) spin();
  if (!strcmp(kind, "output")) output();
  if (!strcmp(kind, "link")) return link("data", "copy") != 0;
  return strcmp(kind, "litter") != 0;
}
