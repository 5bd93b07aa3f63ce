/* Small checkpoints for programs that run on borrowed machines.
 *
 * A program registers the variables that hold its state (or two functions that write and
 * read it) and calls sublet_checkpoint_point() at safe points. It can then resume at its
 * start, save on demand (SIGUSR1) and periodically, save and leave when the machine's
 * owner returns (SIGTERM, exit status 75), and report progress. The state is saved in one
 * file, written atomically, with checksums, readable on any architecture; the generation
 * before it is kept. Without a pool the same binary runs unchanged.
 *
 *   double weights[100];
 *   uint64_t step = 0;
 *   struct sublet_checkpoint* c = sublet_checkpoint_open("my-program", 1);
 *   sublet_checkpoint_variable(c, "weights", weights, 100, SUBLET_FLOAT64);
 *   sublet_checkpoint_variable(c, "step", &step, 1, SUBLET_UINT64);
 *   if (sublet_checkpoint_start(c, NULL) < 0) return 1;  // the reason is on stderr
 *   while (step < 1000000) {
 *     work(weights); ++step;                   // the variables are consistent: a safe point
 *     sublet_checkpoint_progress(c, step, 1000000);
 *     sublet_checkpoint_point(c);
 *   }
 *   sublet_checkpoint_finish(c);
 *   sublet_checkpoint_close(c);
 *
 * The caller owns the variables; they must stay at their addresses until close. A process
 * can have one started handle at a time, which must not be used by several threads at
 * once, except for thread_point(), thread_done(), wanted() and progress(). A child made by fork has
 * no part in its parent's checkpoint: points, progress() and finish() do nothing there, save()
 * returns ECHILD, start() refuses, and the two signals do what they did before start, except that
 * SIGUSR1 is ignored. close() may be called. docs/checkpoint-api.md describes the contract with the
 * pool, docs/checkpoint-format.md the file format. Needs only the C library. */
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

/* Every handle begins with this: all of it that a program compiled against this header may
 * read. It belongs to the binary interface and never changes; the rest of a handle may. */
struct sublet_checkpoint_head {
  int attention; /* 0: a point has nothing to do; written by the library, also in signals */
};

/* The type of a variable's elements. The numbers are part of the file format. */
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
  /* The file to use without a pool (SUBLET_CHECKPOINT_DIR is not set); if NULL, nothing
   * is saved then, and the two signals are not handled. */
  const char* path;
  /* Seconds between periodic saves; SUBLET_CHECKPOINT_NEVER: none; 0: by what a save takes and
   * how long machines are idle, from 30 s to 10 min, and at most 1 % of the run. Overridden by
   * the environment variable SUBLET_CHECKPOINT_PERIOD (seconds; 0: never). A timer tells by
   * SIGUSR1 that a save is due. */
  uint32_t period_s;
  /* Not 0: when asked to leave, point() returns SUBLET_LEAVE instead of exiting. The
   * program must then exit with SUBLET_EXIT_LEFT. */
  int leave_by_returning;
};

#define SUBLET_CHECKPOINT_NEVER UINT32_MAX

/* Results of start(). */
enum { SUBLET_REFUSED = -1, SUBLET_NEW = 0, SUBLET_RESUMED = 1 };
/* Results of point(). */
enum { SUBLET_GO_ON = 0, SUBLET_LEAVE = 1 };

/* Returns a new handle, or NULL (errno ENOMEM, or EINVAL for a program name that is empty
 * or too long). A checkpoint can be resumed only by a program with the same name and the
 * same `layout`: increase the layout whenever the meaning of the saved variables changes. */
struct sublet_checkpoint* sublet_checkpoint_open(const char* program, uint32_t layout);

/* Registers a variable of `count` elements. Call before start. Returns 0, or EINVAL (name
 * empty, too long or already used; unknown type; size overflow), EBUSY (already started),
 * E2BIG (too many sections), ENOMEM. */
int sublet_checkpoint_variable(struct sublet_checkpoint* c, const char* name, void* elements,
                               size_t count, enum sublet_checkpoint_type type);

/* Registers an array whose address and size may change, by two functions. `place` is called
 * during a save, and when the first periodic one is due, and returns the first element, and the
 * number of them in *count; `room` is called during start, after all sections have been verified,
 * and returns where `count` elements are to be put. Both may return NULL for no elements; otherwise
 * NULL means failure, as in callbacks(). The elements fit in the file, so that `count` is safe to
 * allocate. In the file it is a variable. Returns the same as above. */
typedef void* sublet_checkpoint_place(size_t* count, void* user);
typedef void* sublet_checkpoint_room(size_t count, void* user);
int sublet_checkpoint_array(struct sublet_checkpoint* c, const char* name,
                            enum sublet_checkpoint_type type, sublet_checkpoint_place* place,
                            sublet_checkpoint_room* room, void* user);

/* Registers a section that the program writes and reads itself. `save` is called during a
 * save, `restore` during start, after all sections have been verified. Both return 0, or
 * another number on failure: a save then fails (ECANCELED), a start is refused. `restore`
 * must read everything that was written. Returns the same as above. */
typedef int sublet_checkpoint_callback(struct sublet_checkpoint_stream* stream, void* user);
int sublet_checkpoint_callbacks(struct sublet_checkpoint* c, const char* name,
                                sublet_checkpoint_callback* save,
                                sublet_checkpoint_callback* restore, void* user);

/* For the callbacks: write or read `count` elements, converting the byte order if needed.
 * Return 0 or an errno value; EBADMSG for a read past the section's end. */
int sublet_checkpoint_write(struct sublet_checkpoint_stream* stream, const void* elements,
                            size_t count, enum sublet_checkpoint_type type);
int sublet_checkpoint_read(struct sublet_checkpoint_stream* stream, void* elements, size_t count,
                           enum sublet_checkpoint_type type);
/* Bytes of the section not yet read. Check stored lengths against it before allocating. */
uint64_t sublet_checkpoint_remaining(const struct sublet_checkpoint_stream* stream);

int sublet_checkpoint_write_u64(struct sublet_checkpoint_stream* stream, uint64_t value);
int sublet_checkpoint_write_f64(struct sublet_checkpoint_stream* stream, double value);
int sublet_checkpoint_read_u64(struct sublet_checkpoint_stream* stream, uint64_t* value);
int sublet_checkpoint_read_f64(struct sublet_checkpoint_stream* stream, double* value);

/* Migration: checkpoints of older layouts are accepted if the program declares what was different
 * in them. Call these before start, after naming the sections; after start the program computes
 * what the older file lacked:
 *
 *   sublet_checkpoint_oldest(c, 1);                                     // layouts 1 to 3 are read
 *   sublet_checkpoint_variable(c, "momentum", momentum, 100, SUBLET_FLOAT64);
 *   sublet_checkpoint_since(c, "momentum", 2);                          // layout 1 did not have it
 *   sublet_checkpoint_variable(c, "step", &step32, 1, SUBLET_INT32);
 *   sublet_checkpoint_until(c, "step", 2);                              // its type was another
 *   sublet_checkpoint_variable(c, "step", &step, 1, SUBLET_INT64);      // since 3
 *   ...
 *   if (sublet_checkpoint_resumed_layout(c) < 3) step = step32;
 *
 * oldest(): the oldest layout that is read; without it only the program's own.
 * since(): the section is in files from that layout on; from an older file nothing is restored to
 * it, and it keeps its value.
 * until(): the section was in files up to that layout, older than the program's own. It is restored
 * from these, and not saved any more. Its name may be used again, for a section since the next
 * layout.
 * Each returns 0, or EBUSY (already started), ENOENT (no section has this name), EINVAL (a layout
 * that is too new, or older than one that was declared). */
int sublet_checkpoint_oldest(struct sublet_checkpoint* c, uint32_t layout);
int sublet_checkpoint_since(struct sublet_checkpoint* c, const char* name, uint32_t layout);
int sublet_checkpoint_until(struct sublet_checkpoint* c, const char* name, uint32_t layout);
/* After start: the layout of the file that was restored; the program's own if there was none. */
uint32_t sublet_checkpoint_resumed_layout(const struct sublet_checkpoint* c);

/* Restores the newest checkpoint, or if it is damaged, the one before it (with a message
 * on stderr); without one, leaves the variables unchanged. Handles the two signals from
 * now on. `options` may be NULL. Returns SUBLET_RESUMED, SUBLET_NEW, or SUBLET_REFUSED
 * with the reason on stderr and in message(): the checkpoint is from another program or
 * layout or has another format version, another process uses it, or `restore` failed (the
 * variables are then undefined). In that case nothing on disk is changed; the program should exit.
 */
int sublet_checkpoint_start(struct sublet_checkpoint* c,
                            const struct sublet_checkpoint_options* options);

/* What point() calls if there is something to do. Not to be called directly. */
int sublet_checkpoint_point_slow(struct sublet_checkpoint* c);

/* A safe point: the variables are consistent. Costs a load and a compare, unless a save was
 * requested or is due. When asked to leave, it saves and calls exit(75), or returns
 * SUBLET_LEAVE (see options), even if the save failed. An ordinary function of this name is
 * in the library, too, for other languages. */
#if defined(__GNUC__) && !defined(__GNUC_GNU_INLINE__)
inline int sublet_checkpoint_point(struct sublet_checkpoint* c) {
  const struct sublet_checkpoint_head* head = (const struct sublet_checkpoint_head*)(void*)c;
  if (__builtin_expect(__atomic_load_n(&head->attention, __ATOMIC_RELAXED) == 0, 1)) {
    return SUBLET_GO_ON;
  }
  return sublet_checkpoint_point_slow(c);
}
#else
int sublet_checkpoint_point(struct sublet_checkpoint* c);
#endif

/* A critical section: between begin and end the variables are not consistent, point() does
 * nothing, and save() returns EBUSY. A request waits for the next point after the section.
 * Sections may be nested. An end without a begin does nothing. */
void sublet_checkpoint_begin(struct sublet_checkpoint* c);
void sublet_checkpoint_end(struct sublet_checkpoint* c);

/* Points of several threads. `threads` threads are going to call thread_point(); call this
 * before they begin. When something is asked for, each waits in its next thread_point() for
 * the others; then one saves; then all go on, or leave. Returns 0; EINVAL for 0; EBUSY while
 * threads of an earlier call have not all called thread_done(). */
int sublet_checkpoint_threads(struct sublet_checkpoint* c, unsigned threads);
/* The calling thread makes no more points: the others no longer wait for it. */
void sublet_checkpoint_thread_done(struct sublet_checkpoint* c);

/* What thread_point() calls if there is something to do. Not to be called directly. */
int sublet_checkpoint_thread_point_slow(struct sublet_checkpoint* c);

/* A safe point of one of several threads, else the same as point(), and as cheap. Every
 * thread gets the same result. A program with threads had better set leave_by_returning:
 * otherwise one of them calls exit(75) while the others wait. */
#if defined(__GNUC__) && !defined(__GNUC_GNU_INLINE__)
inline int sublet_checkpoint_thread_point(struct sublet_checkpoint* c) {
  const struct sublet_checkpoint_head* head = (const struct sublet_checkpoint_head*)(void*)c;
  if (__builtin_expect(__atomic_load_n(&head->attention, __ATOMIC_RELAXED) == 0, 1)) {
    return SUBLET_GO_ON;
  }
  return sublet_checkpoint_thread_point_slow(c);
}
#else
int sublet_checkpoint_thread_point(struct sublet_checkpoint* c);
#endif

/* Not 0 if the next point would save or leave: it was requested, or a periodic save is due.
 * For programs that must prepare for a save. */
int sublet_checkpoint_wanted(const struct sublet_checkpoint* c);

/* A descriptor that is readable while wanted() is not 0, for programs that wait in poll,
 * select or epoll. Only to be waited for: point() makes it unreadable again, unless asked to
 * leave. Created at the first call, closed by finish and by close, and on exec. -1 with
 * errno: ENOENT (no pool and no path, or not started), ECHILD, EMFILE, ENFILE, ENOMEM. */
int sublet_checkpoint_descriptor(struct sublet_checkpoint* c);

/* Saves now. Returns 0 or an errno value; after an error the generations on disk are
 * unchanged. ENOENT: there is no place to save (no pool and no path, or not started).
 * ECHILD: start was called in another process, from which this one was forked. EBUSY: in a
 * critical section. */
int sublet_checkpoint_save(struct sublet_checkpoint* c);

/* Reports `done` of `total` units of work; as cheap as a point. total 0: unknown. */
void sublet_checkpoint_progress(struct sublet_checkpoint* c, uint64_t done, uint64_t total);

/* A message of one line for `sublet show`, such as "epoch 12: error 0.031": UTF-8, cut after 160
 * bytes. "": none. Call it after start. The last message counts; it is shown within 20 s, as long
 * as the program runs. Costs no more than copying the text. One thread at a time. */
void sublet_checkpoint_say(struct sublet_checkpoint* c, const char* text);

/* The work is complete: the signals are no longer handled, and the files at the program's
 * own `path` are removed, so that the next run starts from the beginning. A pool removes
 * its files itself. */
void sublet_checkpoint_finish(struct sublet_checkpoint* c);

/* Frees the handle. NULL is allowed. The files are kept. */
void sublet_checkpoint_close(struct sublet_checkpoint* c);

uint64_t sublet_checkpoint_generation(const struct sublet_checkpoint* c); /* newest; 0: none */
const char* sublet_checkpoint_message(const struct sublet_checkpoint* c); /* last message or "" */

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_CHECKPOINT_API_SUBLET_CHECKPOINT_H_ */
