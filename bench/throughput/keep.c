/* A short job that leaves something, or needs something: 1 kB in a file "output", 1 kB in a file
 * "input", or a checkpoint with 1 kB of state, saved once.
 *
 * usage: bench-keep output|input|checkpoint */
#include <stdio.h>
#include <string.h>

#include "checkpoint-api/sublet_checkpoint.h"

enum { kBytes = 1000 };

static int write_output(void) {
  static const char bytes[kBytes];
  FILE* file = fopen("output", "w");
  const int written = file && fwrite(bytes, 1, sizeof bytes, file) == sizeof bytes;
  return (file && fclose(file) == 0 && written) ? 0 : 1;
}

static int read_input(void) {
  char bytes[kBytes + 1];
  FILE* file = fopen("input", "r");
  const int read = file && fread(bytes, 1, sizeof bytes, file) == kBytes;
  if (file) fclose(file);
  return read ? 0 : 1;
}

static int save_checkpoint(void) {
  static double state[kBytes / sizeof(double)];
  struct sublet_checkpoint* c = sublet_checkpoint_open("bench", 1);
  if (!c ||
      sublet_checkpoint_variable(c, "state", state, kBytes / sizeof(double), SUBLET_FLOAT64) != 0 ||
      sublet_checkpoint_start(c, NULL) == SUBLET_REFUSED || sublet_checkpoint_save(c) != 0)
    return 1;
  sublet_checkpoint_close(c);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc == 2 ? argv[1] : "";
  if (strcmp(what, "output") == 0) return write_output();
  if (strcmp(what, "input") == 0) return read_input();
  if (strcmp(what, "checkpoint") == 0) return save_checkpoint();
  fputs("usage: bench-keep output|input|checkpoint\n", stderr);
  return 2;
}
