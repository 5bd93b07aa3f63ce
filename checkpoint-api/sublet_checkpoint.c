#define _GNU_SOURCE
#include "checkpoint-api/sublet_checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checkpoint-api/internal.h"

static int signals_in_use; /* by the one started handle */

#define SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

/* Whether this process was forked from the one that called start. */
static int is_parents(const struct sublet_checkpoint* c) {
  return c->process != 0 && c->process != getpid();
}

static uint64_t boot_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sublet_say(struct sublet_checkpoint* c, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(c->message, sizeof c->message, format, values);
  va_end(values);
  dprintf(STDERR_FILENO, "sublet checkpoint: %s\n", c->message);
}

struct sublet_checkpoint* sublet_checkpoint_open(const char* program, uint32_t layout) {
  if (program[0] == 0 || strlen(program) > SUBLET_CHECKPOINT_MAX_PROGRAM) {
    errno = EINVAL;
    return NULL;
  }
  struct sublet_checkpoint* c = calloc(1, sizeof *c);
  unsigned char* buffer = malloc(SUBLET_STREAM_BUFFER);
  if (c == NULL || buffer == NULL) {
    free(c);
    free(buffer);
    errno = ENOMEM;
    return NULL;
  }
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->round_ended, NULL);
  c->buffer = buffer;
  memcpy(c->program, program, strlen(program));
  c->layout = c->oldest_layout = c->resumed_layout = layout;
  c->disk = &sublet_system_disk;
  c->folder = c->lock_file = -1;
  c->progress_ppm = -1;
  c->next_generation = 1;
  c->status = &c->own_status;
  return c;
}

static int add_section(struct sublet_checkpoint* c, const char* name,
                       const struct sublet_section* section) {
  uint64_t bytes;
  uint32_t first_layout = 0;
  const size_t length = strlen(name);
  if (c->started) return EBUSY;
  if (length == 0 || length > SUBLET_CHECKPOINT_MAX_NAME) return EINVAL;
  if (!sublet_entry_bytes(&section->entry, &bytes) || bytes > SIZE_MAX / 2) return EINVAL;
  for (uint32_t i = 0; i < c->section_count; ++i) {
    if (strcmp(c->sections[i].entry.name, name) != 0) continue;
    if (c->sections[i].last_layout >= c->layout) return EINVAL;
    if (c->sections[i].last_layout >= first_layout) first_layout = c->sections[i].last_layout + 1;
  }
  if (c->section_count == SUBLET_CHECKPOINT_MAX_SECTIONS) return E2BIG;
  if (c->section_count == c->section_room) {
    const uint32_t room = c->section_room == 0 ? 16 : 2 * c->section_room;
    struct sublet_section* larger = realloc(c->sections, room * sizeof *larger);
    if (larger == NULL) return ENOMEM;
    c->sections = larger;
    c->section_room = room;
  }
  struct sublet_section* added = &c->sections[c->section_count++];
  *added = *section;
  memcpy(added->entry.name, name, length + 1);
  added->first_layout = first_layout;
  added->last_layout = UINT32_MAX;
  return 0;
}

int sublet_checkpoint_variable(struct sublet_checkpoint* c, const char* name, void* elements,
                               size_t count, enum sublet_checkpoint_type type) {
  if ((uint32_t)type == SUBLET_STREAM || (elements == NULL && count != 0)) return EINVAL;
  const struct sublet_section section = {.entry = {.count = count, .type = (uint32_t)type},
                                         .elements = elements};
  return add_section(c, name, &section);
}

int sublet_checkpoint_array(struct sublet_checkpoint* c, const char* name,
                            enum sublet_checkpoint_type type, sublet_checkpoint_place* place,
                            sublet_checkpoint_room* room, void* user) {
  if ((uint32_t)type == SUBLET_STREAM || place == NULL || room == NULL) return EINVAL;
  const struct sublet_section section = {
      .entry = {.type = (uint32_t)type}, .place = place, .room = room, .user = user};
  return add_section(c, name, &section);
}

int sublet_checkpoint_callbacks(struct sublet_checkpoint* c, const char* name,
                                sublet_checkpoint_callback* save,
                                sublet_checkpoint_callback* restore, void* user) {
  if (save == NULL || restore == NULL) return EINVAL;
  const struct sublet_section section = {
      .entry = {.type = SUBLET_STREAM}, .save = save, .restore = restore, .user = user};
  return add_section(c, name, &section);
}

/* Opens the folder and derives the four file names from `path`, or uses the default names
 * in `folder` if it is not NULL. */
static void choose_files(struct sublet_checkpoint* c, const char* folder, const char* path) {
  char* copy = NULL;
  const char* base = "checkpoint";
  if (folder == NULL) {
    const char* slash = strrchr(path, '/');
    base = slash == NULL ? path : slash + 1;
    copy = slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
    folder = copy;
  }
  if (folder == NULL) {
    c->folder_errno = ENOMEM;
  } else if (base[0] == 0 || strlen(base) > SUBLET_MAX_FILE_NAME) {
    c->folder_errno = base[0] == 0 ? EISDIR : ENAMETOOLONG;
  } else {
    c->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    c->folder_errno = c->folder < 0 ? errno : 0;
    sublet_name_files(c, base);
  }
  if (c->folder < 0) {
    sublet_say(c, "cannot open the checkpoint folder %s: %s; nothing will be saved",
               folder == NULL ? "" : folder, strerror(c->folder_errno));
  }
  free(copy);
}

/* Digits only. */
static int parse_number(const char* text, size_t most_digits, uint64_t* number) {
  *number = 0;
  if (text[0] == 0 || strlen(text) > most_digits) return 0;
  for (; *text != 0; ++text) {
    if (*text < '0' || *text > '9') return 0;
    *number = *number * 10 + (uint64_t)(*text - '0');
  }
  return 1;
}

/* The variable's value; -1: there is none, or it makes no sense. */
static int64_t seconds_of(struct sublet_checkpoint* c, const char* variable) {
  const char* text = getenv(variable);
  uint64_t seconds;
  if (text == NULL) return -1;
  if (parse_number(text, 9, &seconds)) return (int64_t)seconds;
  sublet_say(c, "%s is not a number of seconds; ignored", variable);
  return -1;
}

static void choose_period(struct sublet_checkpoint* c, uint32_t period_s) {
  const int64_t users = seconds_of(c, "SUBLET_CHECKPOINT_PERIOD");
  const int64_t idle = seconds_of(c, "SUBLET_MEAN_IDLE");
  c->period_is_chosen = users >= 0 || period_s != 0;
  c->period_s = period_s == SUBLET_CHECKPOINT_NEVER ? 0 : period_s;
  if (users >= 0) c->period_s = (uint32_t)users;
  c->mean_idle_s = idle >= 0 ? (uint64_t)idle : SUBLET_MEAN_IDLE_DEFAULT_S;
  c->started_ns = boot_ns();
}

/* Plans the next periodic save. */
static int plan_save(struct sublet_checkpoint* c) {
  const uint64_t elapsed_ms = (boot_ns() - c->started_ns) / 1000000;
  return sublet_signals_plan(c->period_is_chosen
                                 ? UINT64_C(1000) * c->period_s
                                 : sublet_next_save_ms(&c->costs, elapsed_ms, c->mean_idle_s));
}

/* Whether the first periodic save would cost too much so early; it is planned for later then. */
static int is_put_off(struct sublet_checkpoint* c) {
  if (c->period_is_chosen || c->costs.one_us != 0) return 0;
  const uint64_t elapsed_ms = (boot_ns() - c->started_ns) / 1000000;
  const uint64_t wait_ms = sublet_put_off_first_ms(sublet_payload_bytes(c), elapsed_ms);
  return wait_ms != 0 && sublet_signals_plan(wait_ms) == 0;
}

/* A rehearsal counts the points. Meanwhile attention stays up, so that each gets here. */
static void choose_stop(struct sublet_checkpoint* c) {
  const char* text = getenv("SUBLET_CHECKPOINT_STOP_AT");
  if (text == NULL) return;
  c->counts_points = parse_number(text, 18, &c->stop_at);
  if (!c->counts_points) {
    sublet_say(c, "SUBLET_CHECKPOINT_STOP_AT is not a number of points; ignored");
  }
  if (c->counts_points) SET(c->shown.attention, 1);
}

static void open_status(struct sublet_checkpoint* c) {
  const char* path = getenv("SUBLET_STATUS");
  if (path == NULL) return;
  struct sublet_status* page = sublet_status_map(path);
  if (page == NULL) {
    sublet_say(c, "cannot use the status page %s: %s; continuing without it", path,
               strerror(errno));
    return;
  }
  c->status = page;
}

/* Overwrites everything that an earlier run may have left in the page. */
static void fill_status(struct sublet_checkpoint* c, const struct sublet_header* resumed) {
  struct sublet_status* s = c->status;
  SET(s->left, 0);
  SET(s->checkpoint_bytes,
      resumed == NULL ? 0 : sublet_head_bytes(resumed->sections) + resumed->payload_bytes);
  SET(s->saved_boot_ns, 0);
  SET(s->save_ns, 0);
  SET(s->progress_ppm, c->progress_ppm);
  SET(s->save_failed_errno, 0);
  SET(s->wants_seen, 0);
  SET(s->points, 0);
  sublet_checkpoint_say(c, "");
  SET(s->resumed_generation, resumed == NULL ? 0 : resumed->generation);
  SET(s->resumed_progress_ppm, resumed == NULL ? -1 : resumed->progress_ppm);
  SET(s->generation, c->generation);
  SET(s->magic, SUBLET_STATUS_MAGIC);
  SET(s->version, SUBLET_STATUS_VERSION);
  __atomic_store_n(&s->aware, 1, __ATOMIC_RELEASE);
}

/* Loads the newest generation, else the previous one. Returns SUBLET_NEW, SUBLET_RESUMED
 * (fills in `header`) or SUBLET_REFUSED. */
static int resume(struct sublet_checkpoint* c, struct sublet_header* header) {
  char why[SUBLET_MAX_MESSAGE];
  const char* name = c->newest;
  enum sublet_load_result result = sublet_load_file(c, name, header);
  const int newest_damaged = result == SUBLET_LOAD_DAMAGED;
  c->newest_is_whole = result == SUBLET_LOAD_DONE;
  if (newest_damaged) {
    memcpy(why, c->message, sizeof why);
    sublet_say(c, "%s is damaged (%.400s); set aside, trying %s", c->newest, why, c->previous);
  }
  if (newest_damaged || result == SUBLET_LOAD_NONE) {
    name = c->previous;
    result = sublet_load_file(c, name, header);
  }
  memcpy(why, c->message, sizeof why);
  if (result == SUBLET_LOAD_REFUSED) {
    sublet_say(c, "%s is refused: %.400s", name, why);
    return SUBLET_REFUSED;
  }
  if (result == SUBLET_LOAD_DAMAGED) {
    sublet_say(c, "%s is damaged (%.400s); starting from the beginning", name, why);
  } else if (result == SUBLET_LOAD_NONE && newest_damaged) {
    sublet_say(c, "there is no %s; starting from the beginning", name);
  }
  /* Renamed only now: a refused start must not change the folder. */
  if (newest_damaged) c->disk->rename(c->folder, c->newest, c->damaged);
  if (result != SUBLET_LOAD_DONE) return SUBLET_NEW;
  c->resumed_layout = header->layout;
  c->progress_ppm = header->progress_ppm;
  c->generation = header->generation;
  /* The number of a lost generation is not reused. */
  c->next_generation = header->generation + (c->newest_is_whole ? 1 : 2);
  if (!c->newest_is_whole) {
    sublet_say(c, "resuming from %s, generation %llu", name, (unsigned long long)c->generation);
  }
  return SUBLET_RESUMED;
}

int sublet_checkpoint_start(struct sublet_checkpoint* c,
                            const struct sublet_checkpoint_options* options) {
  static const struct sublet_checkpoint_options defaults;
  if (options == NULL) options = &defaults;
  const char* pool = getenv("SUBLET_CHECKPOINT_DIR");
  if (pool != NULL && pool[0] == 0) pool = NULL;
  c->in_pool = pool != NULL;
  c->saves = pool != NULL || options->path != NULL;
  c->leave_by_returning = options->leave_by_returning;
  if (sublet_signals_taken_by_parent()) {
    sublet_say(c, "a checkpoint was started before this process was forked, and is its parent's");
    return SUBLET_REFUSED;
  }
  if (c->started || c->folder >= 0 || (c->saves && signals_in_use)) {
    sublet_say(c, "already started in this process");
    return SUBLET_REFUSED;
  }
  if (c->head == NULL) c->head = calloc(1, sublet_head_bytes(c->section_count));
  if (c->head == NULL) {
    sublet_say(c, "out of memory");
    return SUBLET_REFUSED;
  }
  int result = SUBLET_NEW;
  struct sublet_header header;
  if (c->saves) {
    choose_files(c, pool, options->path);
    choose_period(c, options->period_s);
    if (c->folder >= 0 && sublet_lock(c) != 0) {
      close(c->folder);
      c->folder = -1;
      sublet_say(c, "another process uses the checkpoint %s: wait for its end, or use another %s",
                 c->newest, c->in_pool ? "folder" : "path");
      return SUBLET_REFUSED;
    }
    if (c->folder >= 0) result = resume(c, &header);
    if (result == SUBLET_REFUSED) {
      sublet_unlock(c);
      return result;
    }
    sublet_forget_former(c);
    signals_in_use = 1;
    open_status(c);
    SET(c->status->leave_seen, 0); /* from now on the handler's */
    sublet_signals_take(c);
    if (plan_save(c) != 0) {
      sublet_say(c, "no timer for periodic saves: %s; saving only on request", strerror(errno));
    }
    choose_stop(c);
    fill_status(c, result == SUBLET_RESUMED ? &header : NULL);
  }
  c->started = 1;
  c->process = getpid();
  return result;
}

static int save(struct sublet_checkpoint* c, int periodic) {
  if (is_parents(c)) return ECHILD;
  if (c->critical != 0) return EBUSY;
  if (!c->started || !c->saves) return ENOENT;
  const uint64_t begin = boot_ns();
  uint64_t bytes = 0;
  const int error = sublet_save_file(c, &bytes);
  const uint64_t end = boot_ns();
  sublet_add_save(&c->costs, (end - begin) / 1000, periodic); /* one that fails takes time, too */
  plan_save(c);
  SET(c->status->save_failed_errno, (uint32_t)error);
  if (error != 0) {
    sublet_say(c, "cannot save: %s; generation %llu is kept", strerror(error),
               (unsigned long long)c->generation);
    return error;
  }
  SET(c->status->checkpoint_bytes, bytes);
  SET(c->status->saved_boot_ns, end);
  SET(c->status->save_ns, end - begin);
  __atomic_store_n(&c->status->generation, c->generation, __ATOMIC_RELEASE);
  return 0;
}

int sublet_checkpoint_save(struct sublet_checkpoint* c) { return save(c, 0); }

static void count_want(struct sublet_checkpoint* c) {
  SET(c->status->wants_seen, c->status->wants_seen + 1);
}

/* A rehearsal asks at a certain point, by the same signal as a shepherd at an instant. Returns
 * whether that is all: a program may make 10^9 points, so no system call is made (after a fork,
 * started is 0). */
static int is_only_counted(struct sublet_checkpoint* c) {
  if (!c->counts_points || !c->started || c->leaving || c->critical != 0) return 0;
  SET(c->status->points, ++c->points);
  if (c->points == c->stop_at) raise(SIGTERM);
  return !sublet_any_request();
}

int sublet_checkpoint_point_slow(struct sublet_checkpoint* c) {
  if (is_only_counted(c)) return SUBLET_GO_ON;
  if (!c->started || !c->saves || is_parents(c) || c->critical != 0) return SUBLET_GO_ON;
  if (c->leaving) return SUBLET_LEAVE;
  int asked, due;
  int leave = sublet_leave_requested();
  sublet_take_requests(&asked, &due);
  if (c->counts_points) SET(c->shown.attention, 1);
  if (asked) count_want(c);
  if (leave) count_want(c);
  const int saved = leave || asked || (due && !is_put_off(c));
  if (saved) save(c, !leave && !asked);
  /* Asked to leave during that save: the state has not changed since. */
  if (!leave && sublet_leave_requested()) {
    leave = 1;
    count_want(c);
    if (!saved) save(c, 0);
  }
  if (!leave) return SUBLET_GO_ON;
  c->leaving = 1;
  __atomic_store_n(&c->status->left, 1, __ATOMIC_RELEASE);
  if (!c->leave_by_returning) {
    sublet_unname_lock(c);
    exit(SUBLET_EXIT_LEFT);
  }
  return SUBLET_LEAVE;
}

int sublet_checkpoint_wanted(const struct sublet_checkpoint* c) {
  return c->started && c->saves && !is_parents(c) && sublet_any_request();
}

int sublet_checkpoint_descriptor(struct sublet_checkpoint* c) {
  if (c->started && c->saves && !is_parents(c)) return sublet_signals_descriptor();
  errno = is_parents(c) ? ECHILD : ENOENT;
  return -1;
}

/* The inline function of the header, as an ordinary one. */
extern int sublet_checkpoint_point(struct sublet_checkpoint* c);

void sublet_checkpoint_begin(struct sublet_checkpoint* c) { ++c->critical; }

void sublet_checkpoint_end(struct sublet_checkpoint* c) {
  if (c->critical != 0) --c->critical;
}

void sublet_checkpoint_progress(struct sublet_checkpoint* c, uint64_t done, uint64_t total) {
  int32_t ppm = -1;
  if (total != 0 && done >= total) {
    ppm = SUBLET_PPM_MAX;
  } else if (total > UINT64_MAX / SUBLET_PPM_MAX) {
    ppm = (int32_t)(done / (total / SUBLET_PPM_MAX + 1));
  } else if (total != 0) {
    ppm = (int32_t)(done * SUBLET_PPM_MAX / total);
  }
  SET(c->progress_ppm, ppm);
  SET(c->status->progress_ppm, ppm);
}

/* Of the message: not before what was stored until then. The thread sanitizer knows no fences. */
#define SET_NEXT(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)

void sublet_checkpoint_say(struct sublet_checkpoint* c, const char* text) {
  struct sublet_status* s = c->status;
  const uint32_t count = s->message_count & ~1u; /* an earlier run may have ended in the middle */
  size_t i = 0;
  SET(s->message_count, count + 1);
  for (; i < SUBLET_MESSAGE_BYTES && text[i] != '\0'; ++i) SET_NEXT(s->message[i], text[i]);
  if (text[i] != '\0') { /* not in the middle of a character, of four bytes at most */
    for (int back = 0; back < 3 && (text[i] & 0xc0) == 0x80; ++back) --i;
  }
  if (i < SUBLET_MESSAGE_BYTES) SET_NEXT(s->message[i], '\0');
  SET_NEXT(s->message_count, count + 2);
}

/* Restores the signal handlers and tells the shepherd by clearing `aware`. */
static void stop_answering(struct sublet_checkpoint* c) {
  if (!c->started || !c->saves || is_parents(c)) return;
  SET(c->status->aware, 0);
  sublet_signals_give_back();
  signals_in_use = 0;
  c->started = 0;
}

void sublet_checkpoint_finish(struct sublet_checkpoint* c) {
  if (!c->started || is_parents(c)) return;
  const int own_files = c->saves && !c->in_pool && c->folder >= 0;
  sublet_checkpoint_progress(c, 1, 1);
  stop_answering(c);
  c->started = 0;
  if (own_files) {
    c->disk->remove(c->folder, c->previous);
    c->disk->remove(c->folder, c->newest);
  }
  sublet_unlock(c);
}

void sublet_disown(struct sublet_checkpoint* c) {
  if (c->status != &c->own_status) sublet_status_unmap(c->status);
  c->status = &c->own_status;
  c->started = 0;
  /* The locks are the parent's, and must not outlive it. */
  if (c->folder >= 0) close(c->folder);
  if (c->lock_file >= 0) close(c->lock_file);
  c->folder = c->lock_file = -1;
  SET(c->shown.attention, 0);
}

void sublet_checkpoint_close(struct sublet_checkpoint* c) {
  if (c == NULL) return;
  stop_answering(c);
  if (c->status != &c->own_status) sublet_status_unmap(c->status);
  if (!is_parents(c)) sublet_unlock(c);
  if (c->folder >= 0) close(c->folder);
  pthread_cond_destroy(&c->round_ended);
  pthread_mutex_destroy(&c->lock);
  free(c->sections);
  free(c->head);
  free(c->buffer);
  free(c);
}

uint64_t sublet_checkpoint_generation(const struct sublet_checkpoint* c) { return c->generation; }

const char* sublet_checkpoint_message(const struct sublet_checkpoint* c) { return c->message; }
