/* The handle's data and internal functions, shared by this folder's files and tests. */
#ifndef SUBLET_CHECKPOINT_API_INTERNAL_H_
#define SUBLET_CHECKPOINT_API_INTERNAL_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "checkpoint-api/disk.h"
#include "checkpoint-api/file_format.h"
#include "checkpoint-api/interval.h"
#include "checkpoint-api/sublet_checkpoint.h"
#include "checkpoint-api/sublet_status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SUBLET_STREAM_BUFFER = 1 << 16,
  SUBLET_STREAM_PAGE = 1 << 12,
  SUBLET_MAX_FILE_NAME = 240,
  SUBLET_MAX_MESSAGE = 512
};

/* Buffers the payload being written or read. `at` and `end` are positions in `buffer`; a
 * writer has at == 0. */
struct sublet_checkpoint_stream {
  const struct sublet_disk* disk;
  unsigned char* buffer; /* SUBLET_STREAM_BUFFER bytes, the handle's */
  size_t at;
  size_t end;
  int fd;
  int writing;
  int error;           /* first errno; everything after it fails with the same */
  uint64_t offset;     /* in the file, of the next write or read */
  uint64_t unread;     /* reader: payload bytes not yet in the buffer */
  uint64_t in_section; /* writer: bytes written; reader: bytes left */
  uint64_t crc;        /* of the bytes flushed from (read into) the buffer */
};

struct sublet_section {
  struct sublet_entry entry;      /* the count of an array or stream is that of the last save */
  void* elements;                 /* of a variable */
  sublet_checkpoint_place* place; /* of an array, else NULL */
  sublet_checkpoint_room* room;
  sublet_checkpoint_callback* save; /* of a stream, else NULL */
  sublet_checkpoint_callback* restore;
  void* user;
  uint32_t first_layout; /* the files of which layouts have it */
  uint32_t last_layout;  /* UINT32_MAX: all later ones, too */
  int found;             /* used while comparing a head */
};

struct sublet_checkpoint {
  struct sublet_checkpoint_head shown; /* the first member: programs read it */
  int32_t progress_ppm;
  struct sublet_status* status; /* the mapped page, or own_status */
  uint32_t period_s;            /* between periodic saves, if it was chosen; 0: never */
  int period_is_chosen;         /* by the program or its user; else by interval.h: */
  struct sublet_save_costs costs;
  uint64_t mean_idle_s;
  uint64_t started_ns; /* CLOCK_BOOTTIME */

  char program[SUBLET_CHECKPOINT_MAX_PROGRAM + 1];
  uint32_t layout;
  uint32_t oldest_layout;  /* accepted by start */
  uint32_t resumed_layout; /* of the file that was restored; else `layout` */
  struct sublet_section* sections;
  uint32_t section_count;
  uint32_t section_room;

  /* Points of threads, guarded by `lock`. */
  pthread_mutex_t lock;
  pthread_cond_t round_ended;
  unsigned threads; /* that make points */
  unsigned arrived; /* of them, in this round */
  uint64_t round;   /* counts the times that all have met */
  int result;       /* of the last round's point */

  unsigned critical; /* sections begun and not ended */
  int started;
  pid_t process; /* that called start; 0: none yet */
  int saves;     /* there is somewhere to save */
  int in_pool;   /* ... because of SUBLET_CHECKPOINT_DIR */
  int leave_by_returning;
  int leaving; /* saved for the last time */
  int counts_points;
  uint64_t points;  /* counted so far */
  uint64_t stop_at; /* the number of the point at which to leave; 0: none */
  int folder;       /* -1: not open, see folder_errno */
  int folder_errno;
  int newest_is_whole; /* the file `newest` was verified or written by us */
  uint64_t generation;
  uint64_t next_generation;
  char newest[SUBLET_MAX_FILE_NAME + 16];
  char previous[SUBLET_MAX_FILE_NAME + 16];
  char unfinished[SUBLET_MAX_FILE_NAME + 16];
  char damaged[SUBLET_MAX_FILE_NAME + 16];
  char lock_name[SUBLET_MAX_FILE_NAME + 16];
  int lock_file; /* -1: none */

  const struct sublet_disk* disk;
  unsigned char* head;   /* header and entries; made by start */
  unsigned char* buffer; /* SUBLET_STREAM_BUFFER bytes */
  struct sublet_status own_status;
  char message[SUBLET_MAX_MESSAGE];
};

/* sublet_checkpoint.c */
/* Called in a child after fork: the handle was started by its parent. */
void sublet_disown(struct sublet_checkpoint* c);
void sublet_say(struct sublet_checkpoint* c, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

/* lock.c */
/* Locks the open folder's checkpoint. EWOULDBLOCK: another process uses it. */
int sublet_lock(struct sublet_checkpoint* c);
void sublet_unlock(struct sublet_checkpoint* c);
/* The same, but the process keeps the lock until its end. */
void sublet_unname_lock(struct sublet_checkpoint* c);

/* layouts.c */
int sublet_section_in(const struct sublet_section* section, uint32_t layout);
void sublet_forget_former(struct sublet_checkpoint* c); /* the sections of older layouts only */

/* stream.c. The payload begins at `offset` in `fd`. */
void sublet_stream_start(struct sublet_checkpoint_stream* s, struct sublet_checkpoint* c, int fd,
                         int writing, uint64_t offset, uint64_t payload_bytes);
int sublet_stream_flush(struct sublet_checkpoint_stream* s); /* 0 or errno */

/* save.c: sets the names of the four files; `base` has at most SUBLET_MAX_FILE_NAME bytes. */
void sublet_name_files(struct sublet_checkpoint* c, const char* base);
/* Of the sections, about: those that the program writes itself count as in the last save. */
uint64_t sublet_payload_bytes(const struct sublet_checkpoint* c);
/* Writes the next generation and updates c->generation. 0 or errno. */
int sublet_save_file(struct sublet_checkpoint* c, uint64_t* bytes);

/* load.c */
enum sublet_load_result {
  SUBLET_LOAD_NONE,
  SUBLET_LOAD_DONE,
  SUBLET_LOAD_DAMAGED,
  SUBLET_LOAD_REFUSED
};
/* Restores from the file `name` in c->folder; fills in `header` if DONE. Otherwise
 * c->message says what is wrong. The variables change only if the whole file has been
 * verified and fits the program. */
enum sublet_load_result sublet_load_file(struct sublet_checkpoint* c, const char* name,
                                         struct sublet_header* header);

/* signals.c: only one handle per process responds to signals. */
/* From now on SIGTERM and SIGUSR1 set flags and c->shown.attention; the handler of SIGTERM
 * also adds 1 to c->status->leave_seen. Both must stay valid until
 * sublet_signals_give_back(). */
void sublet_signals_take(struct sublet_checkpoint* c);
int sublet_signals_taken_by_parent(void); /* and this process was forked since */
void sublet_signals_give_back(void);      /* restores SIGTERM; ignores SIGUSR1, which would kill */
/* The next periodic save is due so many ms from now; 0: never. -1 with errno on failure. */
int sublet_signals_plan(uint64_t ms);
/* Clears attention, unless there is a request to leave; then says once for each request to
 * save, and for each periodic save that is due, that it is there. */
void sublet_take_requests(int* save, int* due);
int sublet_leave_requested(void);
int sublet_any_request(void); /* to save or to leave, or a periodic save is due */
/* Readable while there is a request; made at the first call. -1 with errno on failure. */
int sublet_signals_descriptor(void);

/* status_page.c */
struct sublet_status* sublet_status_map(const char* path); /* NULL with errno */
void sublet_status_unmap(struct sublet_status* page);

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_CHECKPOINT_API_INTERNAL_H_ */
