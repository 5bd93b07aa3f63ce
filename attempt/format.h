/* The three small files of an attempt's folder: order, record and exit; and places, one for
 * all attempts.
 *
 * Each is text, one "key value" line per value, first line "<title> 1", last line
 * "end". Values are decimal numbers, or bytes with everything outside 0x21..0x7e
 * and '%' itself written as %XX; a list repeats its key. The same code writes and
 * reads them in the client (C++) and in the shepherd (C library only); so it is plain
 * C and does not allocate. docs/shepherd.md lists every key.
 *
 * The parser does not trust its input: it checks sizes, counts, ranges, duplicates,
 * missing keys and NUL bytes, and never reads past the end of the text. Any thread. */
#ifndef SUBLET_ATTEMPT_FORMAT_H_
#define SUBLET_ATTEMPT_FORMAT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why an attempt could not be started (step of its exit record). These three are the
 * job's fault: its program, working folder or limits; every other step is a failure of
 * the machine. The names must not change. */
#define SUBLET_STEP_EXEC "exec"
#define SUBLET_STEP_CHDIR "chdir"
#define SUBLET_STEP_LIMITS "limits"

/* Names inside an attempt's folder. */
#define SUBLET_ORDER_FILE "order"
#define SUBLET_RECORD_FILE "record"
#define SUBLET_EXIT_FILE "exit"
#define SUBLET_CONTROL_SOCKET "control"
#define SUBLET_STATUS_FILE "status"
#define SUBLET_STDOUT_FILE "stdout"
#define SUBLET_STDERR_FILE "stderr"
#define SUBLET_WHOLE_FILE "whole" /* which checkpoint files are (client/shepherd/whole_files.h) */
#define SUBLET_WORK_FOLDER "work"
#define SUBLET_CHECKPOINT_FOLDER "checkpoint"
#define SUBLET_PRIVATE_FOLDER "private" /* the job's /tmp and /var/tmp */
#define SUBLET_SLOTS_FOLDER "slots"     /* in the client's state: such folders between attempts */

/* In the client's state folder. */
#define SUBLET_PLACES_FILE "places"

enum {
  SUBLET_ORDER_MAX_BYTES = 1 << 20,
  SUBLET_RECORD_MAX_BYTES = 1 << 16, /* record, exit and places */
  SUBLET_ORDER_MAX_ARGUMENTS = 4096,
  SUBLET_ORDER_MAX_ENVIRONMENT = 4096,
  SUBLET_MAX_PLACES = 64, /* hidden, and as many granted */
  SUBLET_MAX_OWN_FILES = 64,
  SUBLET_USER_MAX_BYTES = 255,
  SUBLET_PATH_MAX_BYTES = 4095
};

/* The client's order. Text members are never NULL after parsing. A limit of 0 means no
 * limit. `environment` has room for two more variables, SUBLET_CHECKPOINT_DIR and
 * SUBLET_STATUS, which the shepherd adds, and the closing NULL. */
struct sublet_order {
  int64_t job;     /* ids fit in 63 bits: they are assigned in sequence */
  int64_t attempt; /* 32 bits */
  const char* program;
  char* arguments[SUBLET_ORDER_MAX_ARGUMENTS + 1]; /* argv[0] first */
  size_t argument_count;
  char* environment[SUBLET_ORDER_MAX_ENVIRONMENT + 3]; /* NAME=value */
  size_t environment_count;
  const char* work;           /* working folder; a relative path: within the attempt's folder */
  const char* standard_input; /* a file within the working folder; "": /dev/null */
  const char* user; /* who submitted the job: namespaces are kept for it; "": for nobody */
  int64_t uid;      /* -1: that of the shepherd */
  int64_t gid;
  int64_t umask;
  int64_t stdout_limit; /* bytes kept */
  int64_t stderr_limit;
  int64_t limit_cpu_s; /* of all processes together */
  int64_t limit_wall_s;
  int64_t limit_memory;    /* bytes, of all processes together */
  int64_t slot_memory;     /* the slot's part of the machine's, in bytes: the limit if there is no
                              other; 0: none */
  int64_t limit_file;      /* bytes per file */
  int64_t limit_disk;      /* bytes of its folder, as the client measures them; 0: none */
  int64_t limit_processes; /* threads count too; 0: see sublet_process_limit() */
  int64_t limit_open_files;
  int64_t walls;       /* 1: build them (client/shepherd/walls/places.h), or fail */
  int64_t no_network;  /* 1: it may only reach itself; only with walls */
  int64_t only_server; /* 1: it may reach only `server` and loopback (attempt/traffic.h) */
  const char* server;  /* HOST:PORT in numbers; "": not known */
  int64_t bandwidth;   /* bytes per second in each direction (attempt/traffic.h); 0: not bounded */
  const char* monitor; /* monitor.sock */
  /* Folders only for this attempt, which the shepherd creates and removes; their
   * parents exist. "": none. With cgroup v2 alone all are the same. */
  const char* cgroup_unified;
  const char* cgroup_cpu;
  const char* cgroup_memory;
  const char* cgroup_processes;
  int64_t save_deadline_ms;
  int64_t cpu_allowance_ms; /* 0: not lifted to save */
  int64_t lease_ns;         /* CLOCK_BOOTTIME */
  int64_t patience_ms;
  int64_t leaving;    /* enum sublet_leaving (protocol/leaving.h), not DEFAULT */
  int64_t suspend_ms; /* how long it may stay suspended */
  /* Names and patterns of files in which it saves its state itself (job/own_checkpoint.h), and the
   * signal that asks it to; 0: SIGTERM. */
  char* own_files[SUBLET_MAX_OWN_FILES + 1];
  size_t own_file_count;
  int64_t save_signal;
  const char* boot_id; /* of the boot to which lease_ns refers */
};

/* What jobs see of the machine, if they have accounts of their own. Real paths. */
struct sublet_places {
  char* hidden[SUBLET_MAX_PLACES + 1]; /* folders that jobs do not see */
  size_t hidden_count;
  char* grants[SUBLET_MAX_PLACES + 1]; /* what they see although it lies in such a folder */
  size_t grant_count;
};

/* The processes that run the attempt; written before the program starts. */
struct sublet_record {
  int64_t job;
  int64_t attempt;
  const char* boot_id;
  int64_t shepherd_pid;
  int64_t shepherd_start; /* field 22 of /proc/PID/stat */
  int64_t job_pid;
  int64_t job_start;
  int64_t session;            /* of the job */
  int64_t uid;                /* the slot's own uid, -1: none */
  const char* cgroup_unified; /* as in the order, or in that of the slot's attempt before */
  const char* cgroup_cpu;
  const char* cgroup_memory;
  int64_t cpu_before_us; /* CPU time of cgroup_unified that is of earlier attempts */
  int64_t started_ns;    /* CLOCK_BOOTTIME */
};

enum sublet_outcome {
  SUBLET_OUTCOME_EXITED = 1,    /* code: exit status */
  SUBLET_OUTCOME_SIGNALLED = 2, /* code: signal number */
  SUBLET_OUTCOME_FAILED = 3,    /* could not be started: step, code: errno */
  SUBLET_OUTCOME_UNSTARTED = 4  /* asked to leave, or blind, before it ran: reason */
};

enum sublet_limit {
  SUBLET_LIMIT_NONE = 0,
  SUBLET_LIMIT_CPU = 1,
  SUBLET_LIMIT_WALL = 2,
  SUBLET_LIMIT_MEMORY = 3,
  SUBLET_LIMIT_FILE = 4,
  SUBLET_LIMIT_PROCESSES = 5,
  SUBLET_LIMIT_DISK = 6 /* noticed by the client */
};

/* How the attempt ended. The names contain the units of durations and CPU time. */
struct sublet_exit {
  int64_t job;
  int64_t attempt;
  int64_t outcome; /* enum sublet_outcome */
  int64_t code;
  const char* step;   /* if the outcome is FAILED: SUBLET_STEP_EXEC, ...; else "" */
  const char* place;  /* the folder or device at which that failed; "": at none */
  int64_t limit;      /* enum sublet_limit: the one that was exceeded */
  int64_t bound;      /* its value: seconds of CPU or wall time, bytes of memory, of a file or of
                         disk, processes */
  int64_t reason;     /* enum sublet_leave_reason (protocol/frame.h) */
  int64_t asked;      /* 1: it had been asked to leave before it ended */
  int64_t left;       /* 1: the program reported that it saved and left */
  int64_t killed;     /* 1: the shepherd killed it */
  int64_t no_handler; /* 1: no process of the job handled a SIGTERM asking it to leave */
  int64_t unsaved;    /* 1: its handler reported that request, and no checkpoint followed */
  int64_t cpu_user_us;
  int64_t cpu_system_us;
  int64_t wall_us;
  /* The most at once, as far as was seen: bytes of all processes together, or of one of them if
   * that was more; processes and threads. 0: not known. */
  int64_t memory_peak;
  int64_t processes_peak;
  int64_t network_bytes; /* sent and received, without loopback; -1: not known */
  int64_t switches_voluntary;
  int64_t switches_forced;
  int64_t aware;
  int64_t generation; /* of the newest checkpoint, 0: none */
  int64_t checkpoint_bytes;
  int64_t saved_ns; /* CLOCK_BOOTTIME of the newest save, 0: none */
  int64_t save_errno;
  int64_t progress_ppm; /* -1: not reported */
  int64_t resumed_generation;
  int64_t resumed_progress_ppm;
  int64_t quiesce_ns; /* asked to leave -> all processes gone; -1: was not asked */
  /* The steps before that, each after the cause was sensed (protocol/eviction.h); -1: not. */
  int64_t told_ns;
  int64_t demoted_ns;
  int64_t save_asked_ns;
  int64_t checkpointed_ns;
  int64_t sensed;       /* enum sublet_presence_reason with which the monitor said so, 0: none */
  int64_t frozen_ms;    /* time spent frozen */
  int64_t stdout_bytes; /* kept */
  int64_t stderr_bytes;
  int64_t stdout_dropped; /* bytes beyond the limit; > 0: truncated */
  int64_t stderr_dropped;
  int64_t started_ns; /* CLOCK_BOOTTIME, 0: never */
  int64_t ended_ns;   /* CLOCK_BOOTTIME */
  const char* boot_id;
};

/* One of the formats below. */
struct sublet_format;
extern const struct sublet_format sublet_order_format;
extern const struct sublet_format sublet_places_format;
extern const struct sublet_format sublet_record_format;
extern const struct sublet_format sublet_exit_format;

/* The limit of the memory of all processes together, in bytes; 0: none. */
static inline int64_t sublet_memory_limit(const struct sublet_order* order) {
  return order->limit_memory > 0 ? order->limit_memory : order->slot_memory;
}

/* Of a job that sets no limit: one that runs away must not exhaust what the owner's programs
 * need. */
#define SUBLET_DEFAULT_PROCESSES INT64_C(512)

/* How many processes and threads there may be at once. */
static inline int64_t sublet_process_limit(const struct sublet_order* order) {
  return order->limit_processes > 0 ? order->limit_processes : SUBLET_DEFAULT_PROCESSES;
}

/* Fills *out (a struct of the format) from text[0..size), decoding in place:
 * text must be writable, with one spare byte after its end; text members of *out
 * point into it. Members whose key is absent get the format's default.
 * Returns NULL on success, else an error message, with the line number in *line. */
const char* sublet_format_parse(const struct sublet_format* format, char* text, size_t size,
                                void* out, unsigned* line);

/* Writes the struct `in` and returns the number of bytes needed; if that is more than
 * `capacity`, the output is truncated. NULL text is written as empty. */
size_t sublet_format_print(const struct sublet_format* format, const void* in, char* out,
                           size_t capacity);

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_ATTEMPT_FORMAT_H_ */
