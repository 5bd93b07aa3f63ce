/* The C side of tests of other languages' libraries: the same sections, saved and read by
 * the C API.
 *
 * usage: checkpoint-peer save PATH    saves a generation, resuming if there is one
 *        checkpoint-peer show PATH    prints "new", "refused" or "resumed GENERATION", and the
 *                                     sections, one a line: name, contents in hexadecimal
 *        checkpoint-peer judge PATH   reads files from stdin, each a 32-bit size in host order
 *                                     and that many bytes; writes each to PATH, tries to
 *                                     resume from it, and prints n, x or r (as above)
 *
 *        checkpoint-peer intervals    reads lines of numbers from stdin, what a save takes and what
 *                                     saves have taken in us, the run's ms and the mean idle time
 *                                     in s, and prints the ms until the next save
 *
 * Program "peer", layout 1; of each type a section of three elements, named by its number
 * ("1" to "10"), and a stream of bytes, "stream". In host order. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint-api/interval.h"
#include "checkpoint-api/sublet_checkpoint.h"

enum { kTypes = 10, kElements = 3, kMostBytes = 1 << 16 };
static const size_t kWidths[kTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

static unsigned char elements[kTypes][kElements * 8];
static unsigned char stream_bytes[kMostBytes];
static size_t stream_size;

static int save_stream(struct sublet_checkpoint_stream* stream, void* user) {
  (void)user;
  return sublet_checkpoint_write(stream, stream_bytes, stream_size, SUBLET_UINT8);
}

static int restore_stream(struct sublet_checkpoint_stream* stream, void* user) {
  (void)user;
  const uint64_t size = sublet_checkpoint_remaining(stream);
  if (size > kMostBytes) return 1;
  stream_size = (size_t)size;
  return sublet_checkpoint_read(stream, stream_bytes, stream_size, SUBLET_UINT8);
}

/* Opens and starts; the result of start in *result. */
static struct sublet_checkpoint* start(const char* path, int* result) {
  const struct sublet_checkpoint_options options = {path, SUBLET_CHECKPOINT_NEVER, 0};
  struct sublet_checkpoint* c = sublet_checkpoint_open("peer", 1);
  for (int i = 0; i < kTypes; ++i) {
    char name[8];
    snprintf(name, sizeof name, "%d", i + 1);
    sublet_checkpoint_variable(c, name, elements[i], kElements,
                               (enum sublet_checkpoint_type)(i + 1));
  }
  sublet_checkpoint_callbacks(c, "stream", save_stream, restore_stream, NULL);
  *result = sublet_checkpoint_start(c, &options);
  return c;
}

static void print_section(const char* name, const unsigned char* bytes, size_t size) {
  printf("%s ", name);
  for (size_t i = 0; i < size; ++i) printf("%02x", bytes[i]);
  putchar('\n');
}

static void show(const struct sublet_checkpoint* c, int result) {
  if (result != SUBLET_RESUMED) {
    puts(result == SUBLET_NEW ? "new" : "refused");
    return;
  }
  printf("resumed %llu\n", (unsigned long long)sublet_checkpoint_generation(c));
  for (int i = 0; i < kTypes; ++i) {
    char name[8];
    snprintf(name, sizeof name, "%d", i + 1);
    print_section(name, elements[i], kElements * kWidths[i]);
  }
  print_section("stream", stream_bytes, stream_size);
}

/* Elements that show their order and sign; finite as floating-point numbers, too. */
static int save(struct sublet_checkpoint* c, int result) {
  if (result == SUBLET_REFUSED) return 1;
  for (size_t i = 0; i < sizeof elements; ++i) {
    ((unsigned char*)elements)[i] = (unsigned char)(i * 29 % 101 + 128 * (i % 8 == 0));
  }
  stream_size = 5;
  memcpy(stream_bytes, "hello", 5);
  sublet_checkpoint_progress(c, 1, 4);
  return sublet_checkpoint_save(c) != 0;
}

static int judge(const char* path) {
  uint32_t size;
  if (freopen("/dev/null", "w", stderr) == NULL) return 1;
  while (fread(&size, sizeof size, 1, stdin) == 1) {
    unsigned char* bytes = malloc(size + 1u);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int written = bytes != NULL && fd >= 0 && fread(bytes, 1, size, stdin) == size &&
                        write(fd, bytes, size) == (ssize_t)size;
    free(bytes);
    close(fd);
    if (!written) return 1;
    int result;
    sublet_checkpoint_close(start(path, &result));
    putchar(result == SUBLET_REFUSED ? 'x' : result == SUBLET_NEW ? 'n' : 'r');
  }
  return 0;
}

static int intervals(void) {
  unsigned long long one_us, spent_us, elapsed_ms, mean_idle_s;
  while (scanf("%llu %llu %llu %llu", &one_us, &spent_us, &elapsed_ms, &mean_idle_s) == 4) {
    const struct sublet_save_costs costs = {one_us, spent_us};
    printf("%llu %llu\n", (unsigned long long)sublet_next_save_ms(&costs, elapsed_ms, mean_idle_s),
           (unsigned long long)sublet_put_off_first_ms(spent_us, elapsed_ms));
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "intervals") == 0) return intervals();
  if (argc != 3) return 2;
  if (strcmp(argv[1], "judge") == 0) return judge(argv[2]);
  int result;
  struct sublet_checkpoint* c = start(argv[2], &result);
  int status = 0;
  if (strcmp(argv[1], "save") == 0) {
    status = save(c, result);
  } else {
    show(c, result);
  }
  sublet_checkpoint_close(c);
  return status;
}
