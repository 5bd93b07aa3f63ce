/* A program whose checkpoint goes from machine to machine, and between C and Python: walk.py
 * does the same steps and has the same sections. Its numbers are exact everywhere, provided
 * that a product and a sum are not contracted (-ffp-contract=off).
 *
 * usage: walk CHECKPOINT STEPS [LEAVE]
 * Does STEPS steps and prints the result; asks itself to leave after step LEAVE. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint-api/sublet_checkpoint.h"

enum { kCells = 32, kTypes = 10, kElements = 3, kMostNotes = 4096 };

static uint64_t step, mixed = 1;
static double cells[kCells];
static int8_t i8[kElements];
static uint8_t u8[kElements];
static int16_t i16[kElements];
static uint16_t u16[kElements];
static int32_t i32[kElements];
static uint32_t u32[kElements];
static int64_t i64[kElements];
static uint64_t u64[kElements];
static float f32[kElements];
static double f64[kElements];
static void* const elements[kTypes] = {i8, u8, i16, u16, i32, u32, i64, u64, f32, f64};

static unsigned char notes[kMostNotes];
static size_t notes_size;

static int save_notes(struct sublet_checkpoint_stream* stream, void* user) {
  (void)user;
  return sublet_checkpoint_write(stream, notes, notes_size, SUBLET_UINT8);
}

static int restore_notes(struct sublet_checkpoint_stream* stream, void* user) {
  (void)user;
  const uint64_t size = sublet_checkpoint_remaining(stream);
  if (size > kMostNotes) return 1;
  notes_size = (size_t)size;
  return sublet_checkpoint_read(stream, notes, notes_size, SUBLET_UINT8);
}

static void do_step(void) {
  mixed = mixed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  const double part = (double)(mixed >> 11) / 9007199254740992.0; /* 2^53 */
  cells[mixed >> 59] = cells[mixed >> 59] * 0.75 + part;
  const size_t at = step % kElements;
  i8[at] = (int8_t)((int)(mixed >> 56) - 128);
  u8[at] = (uint8_t)(mixed >> 55);
  i16[at] = (int16_t)((int)(mixed >> 48) - 32768);
  u16[at] = (uint16_t)(mixed >> 47);
  i32[at] = (int32_t)((int64_t)(mixed >> 32) - 2147483648);
  u32[at] = (uint32_t)(mixed >> 31);
  i64[at] = (int64_t)(mixed >> 1) - INT64_C(4611686018427387904);
  u64[at] = mixed;
  f32[at] = (float)(mixed >> 40) / 16777216.0f; /* 2^24 */
  f64[at] = part - 0.5;
  if (notes_size < kMostNotes) notes[notes_size++] = (unsigned char)(mixed >> 33);
  ++step;
}

static void print_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  printf("%016llx\n", (unsigned long long)bits);
}

static void print_result(void) {
  for (int i = 0; i < kCells; ++i) print_double(cells[i]);
  for (int i = 0; i < kElements; ++i) {
    printf("%d %u %d %u %ld %lu %lld %llu\n", i8[i], u8[i], i16[i], u16[i], (long)i32[i],
           (unsigned long)u32[i], (long long)i64[i], (unsigned long long)u64[i]);
    print_double((double)f32[i]);
    print_double(f64[i]);
  }
  for (size_t i = 0; i < notes_size; ++i) printf("%02x", notes[i]);
  putchar('\n');
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const uint64_t steps = strtoull(argv[2], NULL, 10);
  const uint64_t leave = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
  const struct sublet_checkpoint_options options = {argv[1], SUBLET_CHECKPOINT_NEVER, 0};
  struct sublet_checkpoint* c = sublet_checkpoint_open("walk", 1);
  sublet_checkpoint_variable(c, "step", &step, 1, SUBLET_UINT64);
  sublet_checkpoint_variable(c, "mixed", &mixed, 1, SUBLET_UINT64);
  sublet_checkpoint_variable(c, "cells", cells, kCells, SUBLET_FLOAT64);
  for (int i = 0; i < kTypes; ++i) {
    char name[8];
    snprintf(name, sizeof name, "%d", i + 1);
    sublet_checkpoint_variable(c, name, elements[i], kElements,
                               (enum sublet_checkpoint_type)(i + 1));
  }
  sublet_checkpoint_callbacks(c, "notes", save_notes, restore_notes, NULL);
  if (sublet_checkpoint_start(c, &options) < 0) return 1;
  while (step < steps) {
    do_step();
    if (step == leave) raise(SIGTERM);
    sublet_checkpoint_progress(c, step, steps);
    sublet_checkpoint_point(c);
  }
  print_result();
  sublet_checkpoint_finish(c);
  sublet_checkpoint_close(c);
  return 0;
}
