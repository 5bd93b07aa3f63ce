/* The status page: 4096 bytes of shared memory in which a running job reports the state
 * of its checkpoints to its shepherd, without a system call.
 *
 * The shepherd creates the file (SUBLET_STATUS_BYTES zero bytes) and names it in the
 * environment variable SUBLET_STATUS; the job maps it shared and is the only writer of
 * every field. The shepherd only reads it and trusts nothing in it, since a job may write
 * anything. Both run on one machine, so the byte order is the host's.
 *
 * Fields are read and written individually with the GCC atomics (__atomic_load_n,
 * __atomic_store_n). `generation` is stored last, with release order: a reader that loads
 * it with acquire order sees the size, time and duration of that save or a later one.
 * `aware` is stored with release order after everything that `start` fills in.
 * `message` is written between two steps of `message_count`: while it is odd, or if it has changed
 * since before the text was read, the text may be half of one message and half of another.
 *
 * When the owner returns, a program has almost no CPU time until its SIGTERM handler has
 * counted leave_seen; from then on it has its whole allowance to save (docs/shepherd.md).
 *
 * Plain C, no library needed: the shepherd includes only this header. */
#ifndef SUBLET_CHECKPOINT_API_SUBLET_STATUS_H_
#define SUBLET_CHECKPOINT_API_SUBLET_STATUS_H_

#include <stddef.h>
#include <stdint.h>

#define SUBLET_STATUS_MAGIC 0x54534253u /* "SBST" in a little-endian dump */
/* Version 1 has no leave_seen; there the first sign of an answer is wants_seen. */
#define SUBLET_STATUS_VERSION 2u
#define SUBLET_STATUS_BYTES 4096
#define SUBLET_MESSAGE_BYTES 160 /* of a message at most; a shorter one ends in a NUL */

/* Exit status of a job that left because it was asked to. */
#define SUBLET_EXIT_LEFT 75

struct sublet_status {
  uint32_t magic;
  uint32_t version;
  uint32_t aware;             /* 1 once the program can answer SIGUSR1 and SIGTERM */
  uint32_t left;              /* 1: it leaves because it was asked to, even if the save failed */
  uint64_t generation;        /* newest complete checkpoint; 0: none */
  uint64_t checkpoint_bytes;  /* its size */
  uint64_t saved_boot_ns;     /* CLOCK_BOOTTIME at the end of the last complete save; 0: none */
  uint64_t save_ns;           /* duration of that save */
  int32_t progress_ppm;       /* 0 to 1,000,000; -1: unknown */
  uint32_t save_failed_errno; /* errno of the last save; 0: it succeeded */
  uint32_t wants_seen; /* save requests (either signal) seen at a safe point, before the save */
  uint32_t leave_seen; /* SIGTERMs seen, counted by the handler itself; since version 2 */
  uint64_t resumed_generation;  /* generation from which this run resumed; 0: none */
  int32_t resumed_progress_ppm; /* progress stored in that generation; -1: none or unknown */
  uint32_t message_count;       /* even: twice the number of messages; odd: one is being written */
  uint64_t points;              /* safe points so far; counted only in a rehearsal */
  char message[SUBLET_MESSAGE_BYTES]; /* what the program says of itself, UTF-8 */
};

#ifdef __cplusplus
#define SUBLET_STATUS_ASSERT(what) static_assert(what, #what)
#else
#define SUBLET_STATUS_ASSERT(what) _Static_assert(what, #what)
#endif
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, magic) == 0);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, version) == 4);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, aware) == 8);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, left) == 12);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, generation) == 16);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, checkpoint_bytes) == 24);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, saved_boot_ns) == 32);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, save_ns) == 40);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, progress_ppm) == 48);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, save_failed_errno) == 52);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, wants_seen) == 56);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, leave_seen) == 60);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, resumed_generation) == 64);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, resumed_progress_ppm) == 72);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, points) == 80);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, message_count) == 76);
SUBLET_STATUS_ASSERT(offsetof(struct sublet_status, message) == 88);
SUBLET_STATUS_ASSERT(sizeof(struct sublet_status) == 88 + SUBLET_MESSAGE_BYTES);
#undef SUBLET_STATUS_ASSERT

#endif /* SUBLET_CHECKPOINT_API_SUBLET_STATUS_H_ */
