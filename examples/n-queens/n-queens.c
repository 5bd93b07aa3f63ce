/* In how many ways can SIZE queens stand on a board of SIZE x SIZE fields so that none attacks
 * another? Counts those with the queen of the first row in column FIRST.
 * usage: n-queens SIZE FIRST [CHECKPOINT]
 *
 * Goes through the rows without recursion, so that where it is can be saved: for each row one word
 * for the columns still to be tried, and three for what the queens above it attack. */
#include <stdio.h>
#include <stdlib.h>

#include "checkpoint-api/sublet_checkpoint.h"

enum { MOST = 31 };

/* A row's state. Bits are columns. */
struct row {
  uint32_t columns, left, right; /* attacked from above: straight, and by the two diagonals */
  uint32_t untried;
};

enum { WORDS = sizeof(struct row) / sizeof(uint32_t) };

static struct row rows[MOST];
static uint64_t row = 1, solutions; /* row 0 holds the first queen */
static uint64_t board[2];           /* SIZE and FIRST */

/* Puts a queen into `column` (a bit) of the row, and opens the row below. */
static void place(const struct row* from, uint32_t column, struct row* below) {
  const uint32_t all = (UINT32_C(1) << board[0]) - 1;
  below->columns = from->columns | column;
  below->left = (from->left | column) << 1 & all;
  below->right = (from->right | column) >> 1;
  below->untried = all & ~(below->columns | below->left | below->right);
}

/* One step: the next queen of the present row, or back to the row above. */
static void step(void) {
  const uint32_t column = rows[row].untried & -rows[row].untried;
  if (column == 0) {
    --row;
    return;
  }
  rows[row].untried &= ~column;
  if (row + 1 == board[0]) {
    ++solutions;
  } else {
    place(&rows[row], column, &rows[row + 1]);
    ++row;
  }
}

/* How many columns of a row lie below those still to be tried. */
static uint64_t passed(const struct row* tried) {
  return tried->untried == 0 ? board[0] : (uint64_t)__builtin_ctz(tried->untried);
}

static int number(const char* text, long least, long most, uint64_t* value) {
  char* end;
  const long read = strtol(text, &end, 10);
  *value = (uint64_t)read;
  return end != text && *end == '\0' && read >= least && read <= most;
}

/* For `sublet ls` and `sublet show`: by the second queen's column and the third's. */
static void tell(struct sublet_checkpoint* c, uint64_t size) {
  char found[64];
  snprintf(found, sizeof found, "%llu solutions so far", (unsigned long long)solutions);
  sublet_checkpoint_say(c, found);
  sublet_checkpoint_progress(c, passed(&rows[1]) * size + passed(&rows[2]), size * (size + 1));
}

int main(int argc, char** argv) {
  uint64_t size, first;
  if (argc < 3 || argc > 4 || !number(argv[1], 2, MOST, &size) ||
      !number(argv[2], 0, (long)size - 1, &first)) {
    fputs("usage: n-queens SIZE FIRST [CHECKPOINT]\nSIZE: 2 to 31; FIRST: a column, from 0\n",
          stderr);
    return 2;
  }
  board[0] = size;
  board[1] = first;
  place(&rows[0], UINT32_C(1) << first, &rows[1]);

  struct sublet_checkpoint_options options = {.path = argc == 4 ? argv[3] : NULL};
  struct sublet_checkpoint* c = sublet_checkpoint_open("n-queens", 1);
  sublet_checkpoint_variable(c, "board", board, 2, SUBLET_UINT64);
  sublet_checkpoint_variable(c, "rows", rows, MOST * WORDS, SUBLET_UINT32);
  sublet_checkpoint_variable(c, "row", &row, 1, SUBLET_UINT64);
  sublet_checkpoint_variable(c, "solutions", &solutions, 1, SUBLET_UINT64);
  if (sublet_checkpoint_start(c, &options) < 0) return 1; /* the reason is on stderr */
  if (board[0] != size || board[1] != first || row >= size) {
    fputs("n-queens: the checkpoint was made for another board\n", stderr);
    sublet_checkpoint_close(c);
    return 1;
  }
  while (row > 0) {
    step();
    if (row == 2) tell(c, size);
    sublet_checkpoint_point(c); /* between two steps: a safe point */
  }
  printf("size %d\nfirst queen in column %d\nsolutions %llu\n", (int)size, (int)first,
         (unsigned long long)solutions);
  sublet_checkpoint_finish(c);
  sublet_checkpoint_close(c);
  return 0;
}
