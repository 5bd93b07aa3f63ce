/* Small checkpoints for programs that run on borrowed machines.
 *
 * A program names the variables that hold its state (or gives two functions that
 * write and read it), calls sublet_checkpoint_point() at safe points, and gets:
 * resume at start, save on demand (SIGUSR1), save periodically, save and leave when
 * the machine's owner returns (SIGTERM, exit status 75), progress, and one atomic,
 * checksummed file that resumes on any architecture, with the generation before it
 * kept. Without a pool the same binary runs unchanged.
 *
 *   double weights[100];
 *   uint64_t step = 0;
 *   struct sublet_checkpoint* c = sublet_checkpoint_open("my-program", 1);
 *   sublet_checkpoint_variable(c, "weights", weights, 100, SUBLET_FLOAT64);
 *   sublet_checkpoint_variable(c, "step", &step, 1, SUBLET_UINT64);
 *   if (sublet_checkpoint_start(c, NULL) < 0) return 1;  // it has said why
 *   while (step < 1000000) {
 *     work(weights); ++step;                   // the variables agree here: a safe point
 *     sublet_checkpoint_progress(c, step, 1000000);
 *     sublet_checkpoint_point(c);
 *   }
 *   sublet_checkpoint_finish(c);
 *   sublet_checkpoint_close(c);
 *
 * The caller owns the variables; they must stay where they are until close. One
 * handle at a time is started in a process, and one thread at a time may call with
 * it. docs/checkpoint-api.md has the contract with the pool, docs/checkpoint-format.md
 * the file byte by byte. No dependency but the C library. */
#ifndef SUBLET_CHECKPOINT_API_SUBLET_CHECKPOINT_H_
#define SUBLET_CHECKPOINT_API_SUBLET_CHECKPOINT_H_

#include <stddef.h>
#include <stdint.h>

#include "sublet_status.h" /* SUBLET_EXIT_LEFT */

#ifdef __cplusplus
extern "C" {
#endif

struct sublet_checkpoint;
struct sublet_checkpoint_stream;

/* What a variable's elements are. The numbers are part of the file format. */
enum sublet_checkpoint_type {
  SUBLET_INT8 = 1,
  SUBLET_UINT8 = 2, /* also for raw bytes */
  SUBLET_INT16 = 3,
  SUBLET_UINT16 = 4,
  SUBLET_INT32 = 5,
  SUBLET_UINT32 = 6,
  SUBLET_INT64 = 7,
  SUBLET_UINT64 = 8,
  SUBLET_FLOAT32 = 9, /* IEEE 754 binary32 */
  SUBLET_FLOAT64 = 10 /* IEEE 754 binary64 */
};

enum {
  SUBLET_CHECKPOINT_MAX_NAME = 47,    /* bytes of a section's name */
  SUBLET_CHECKPOINT_MAX_PROGRAM = 63, /* bytes of a program's name */
  SUBLET_CHECKPOINT_MAX_SECTIONS = 4096
};

struct sublet_checkpoint_options {
  /* File to use when there is no pool (SUBLET_CHECKPOINT_DIR is not set); NULL:
   * then nothing is saved, and the two signals keep their usual meaning. */
  const char* path;
  /* Seconds between periodic saves; 0: 600. SUBLET_CHECKPOINT_NEVER: none. The
   * environment variable SUBLET_CHECKPOINT_PERIOD (seconds, 0 for never) wins. */
  uint32_t period_s;
  /* Not 0: asked to leave, point() returns SUBLET_LEAVE instead of ending the
   * process. The program then unwinds and exits with SUBLET_EXIT_LEFT. */
  int leave_by_returning;
};

#define SUBLET_CHECKPOINT_NEVER UINT32_MAX

/* What start() returns. */
enum { SUBLET_REFUSED = -1, SUBLET_NEW = 0, SUBLET_RESUMED = 1 };
/* What point() returns. */
enum { SUBLET_GO_ON = 0, SUBLET_LEAVE = 1 };

/* A new handle, or NULL (errno ENOMEM, or EINVAL for a program name that is empty or
 * too long). A checkpoint is taken only by a program with the same name and the same
 * `layout`: raise the layout whenever the meaning of the saved variables changes. */
struct sublet_checkpoint* sublet_checkpoint_open(const char* program, uint32_t layout);

/* Names a variable of `count` elements. Call before start. 0, or errno: EINVAL (name
 * empty, too long or taken; unknown type; size overflow), EBUSY (started already),
 * E2BIG (too many sections), ENOMEM. */
int sublet_checkpoint_variable(struct sublet_checkpoint* c, const char* name, void* elements,
                               size_t count, enum sublet_checkpoint_type type);

/* Names a section that the program writes and reads itself. `save` runs inside a save,
 * `restore` inside start, once all sections are known to be whole. Both return 0, or
 * another number to say no: a save is then given up (ECANCELED), a start refused.
 * `restore` must read all that was written. Results as above. */
typedef int sublet_checkpoint_callback(struct sublet_checkpoint_stream* stream, void* user);
int sublet_checkpoint_callbacks(struct sublet_checkpoint* c, const char* name,
                                sublet_checkpoint_callback* save,
                                sublet_checkpoint_callback* restore, void* user);

/* Inside the callbacks: `count` elements, swapped where the machine needs it. 0 or
 * errno; a read past the section's end is EBADMSG. */
int sublet_checkpoint_write(struct sublet_checkpoint_stream* stream, const void* elements,
                            size_t count, enum sublet_checkpoint_type type);
int sublet_checkpoint_read(struct sublet_checkpoint_stream* stream, void* elements, size_t count,
                           enum sublet_checkpoint_type type);
/* Bytes of the section not yet read. Check a stored length against it before allocating. */
uint64_t sublet_checkpoint_remaining(const struct sublet_checkpoint_stream* stream);

int sublet_checkpoint_write_u64(struct sublet_checkpoint_stream* stream, uint64_t value);
int sublet_checkpoint_write_f64(struct sublet_checkpoint_stream* stream, double value);
int sublet_checkpoint_read_u64(struct sublet_checkpoint_stream* stream, uint64_t* value);
int sublet_checkpoint_read_f64(struct sublet_checkpoint_stream* stream, double* value);

/* Restores the newest checkpoint that is whole, else the one before it (and says so on
 * stderr), else leaves the variables as they are. Answers the two signals from now on.
 * `options` may be NULL. Returns SUBLET_RESUMED, SUBLET_NEW, or SUBLET_REFUSED with a
 * sentence on stderr and in message(): the checkpoint is another program's, of another
 * layout or a newer format, or `restore` said no (the variables are then undefined).
 * Nothing on disk is touched in that case; the program should end. */
int sublet_checkpoint_start(struct sublet_checkpoint* c,
                            const struct sublet_checkpoint_options* options);

/* A safe point: the variables agree with each other. A few nanoseconds, unless a save
 * was asked for or is due. Asked to leave, it saves and ends the process by exit(75),
 * or returns SUBLET_LEAVE (see options); it does so even when the save failed. */
int sublet_checkpoint_point(struct sublet_checkpoint* c);

/* Saves now. 0 or errno; after an error the generations on disk are as before. ENOENT:
 * there is nowhere to save (no pool and no path, or not started). */
int sublet_checkpoint_save(struct sublet_checkpoint* c);

/* `done` of `total` units of work, as cheap as a point. total 0: unknown. */
void sublet_checkpoint_progress(struct sublet_checkpoint* c, uint64_t done, uint64_t total);

/* The work is complete: later signals end the process as usual, and the files at the
 * program's own `path` are removed, so that the next run starts anew. In a pool the
 * pool removes its own. */
void sublet_checkpoint_finish(struct sublet_checkpoint* c);

/* Gives everything back. NULL is allowed. The files stay. */
void sublet_checkpoint_close(struct sublet_checkpoint* c);

uint64_t sublet_checkpoint_generation(const struct sublet_checkpoint* c); /* newest; 0: none */
const char* sublet_checkpoint_message(const struct sublet_checkpoint* c); /* last trouble or "" */

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_CHECKPOINT_API_SUBLET_CHECKPOINT_H_ */
