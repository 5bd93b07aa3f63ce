#include "attempt/format.h"

#include <string.h>

enum kind { kNumber, kText, kList };
enum need { kOptional, kRequired };

struct field {
  const char* name;
  uint32_t offset;
  uint32_t count_offset; /* of a list */
  uint8_t kind;
  uint8_t required;
  int64_t low;  /* smallest number */
  int64_t high; /* largest number, longest text, most items */
  int64_t absent;
};

struct sublet_format {
  const char* title;
  const struct field* fields;
  size_t count;
  int refuse_unknown; /* for orders: an unknown key could be a limit */
};

#define NUMBER(type, member, need, low, high, absent) \
  { #member, offsetof(struct type, member), 0, kNumber, need, low, high, absent }
#define TEXT(type, member, need, longest) \
  { #member, offsetof(struct type, member), 0, kText, need, 0, longest, 0 }
#define LIST(type, key, member, count, most) \
  { key, offsetof(struct type, member), offsetof(struct type, count), kList, kOptional, 0, most, 0 }

#define WEEK_MS (7 * 24 * 3600 * 1000ll)
#define HIGHEST_UID 0xfffffffeLL

static const struct field kOrderFields[] = {
    NUMBER(sublet_order, job, kRequired, 1, INT64_MAX, 0),
    NUMBER(sublet_order, attempt, kRequired, 1, UINT32_MAX, 0),
    TEXT(sublet_order, program, kRequired, SUBLET_PATH_MAX_BYTES),
    LIST(sublet_order, "argument", arguments, argument_count, SUBLET_ORDER_MAX_ARGUMENTS),
    LIST(sublet_order, "environment", environment, environment_count, SUBLET_ORDER_MAX_ENVIRONMENT),
    TEXT(sublet_order, work, kRequired, SUBLET_PATH_MAX_BYTES),
    TEXT(sublet_order, standard_input, kOptional, SUBLET_PATH_MAX_BYTES),
    TEXT(sublet_order, user, kOptional, SUBLET_USER_MAX_BYTES),
    NUMBER(sublet_order, uid, kOptional, -1, HIGHEST_UID, -1),
    NUMBER(sublet_order, gid, kOptional, -1, HIGHEST_UID, -1),
    NUMBER(sublet_order, umask, kOptional, 0, 0777, 077),
    NUMBER(sublet_order, stdout_limit, kRequired, 0, INT64_MAX, 0),
    NUMBER(sublet_order, stderr_limit, kRequired, 0, INT64_MAX, 0),
    NUMBER(sublet_order, limit_cpu_s, kOptional, 0, INT32_MAX, 0),
    NUMBER(sublet_order, limit_wall_s, kOptional, 0, INT32_MAX, 0),
    NUMBER(sublet_order, limit_memory, kOptional, 0, INT64_MAX, 0),
    NUMBER(sublet_order, slot_memory, kOptional, 0, INT64_MAX, 0),
    NUMBER(sublet_order, limit_file, kOptional, 0, INT64_MAX, 0),
    NUMBER(sublet_order, limit_disk, kOptional, 0, INT64_MAX, 0),
    NUMBER(sublet_order, limit_processes, kOptional, 0, INT32_MAX, 0),
    NUMBER(sublet_order, limit_open_files, kOptional, 0, INT32_MAX, 0),
    NUMBER(sublet_order, walls, kOptional, 0, 1, 1),
    NUMBER(sublet_order, no_network, kOptional, 0, 1, 0),
    NUMBER(sublet_order, only_server, kOptional, 0, 1, 0),
    TEXT(sublet_order, server, kOptional, 64),
    NUMBER(sublet_order, bandwidth, kOptional, 0, INT64_MAX, 0),
    TEXT(sublet_order, monitor, kRequired, 107), /* sun_path */
    TEXT(sublet_order, cgroup_unified, kOptional, SUBLET_PATH_MAX_BYTES),
    TEXT(sublet_order, cgroup_cpu, kOptional, SUBLET_PATH_MAX_BYTES),
    TEXT(sublet_order, cgroup_memory, kOptional, SUBLET_PATH_MAX_BYTES),
    TEXT(sublet_order, cgroup_processes, kOptional, SUBLET_PATH_MAX_BYTES),
    NUMBER(sublet_order, save_deadline_ms, kRequired, 0, WEEK_MS, 0),
    NUMBER(sublet_order, cpu_allowance_ms, kRequired, 0, WEEK_MS, 0),
    NUMBER(sublet_order, lease_ns, kRequired, 0, INT64_MAX, 0),
    NUMBER(sublet_order, patience_ms, kRequired, 0, 4 * WEEK_MS, 0),
    NUMBER(sublet_order, leaving, kOptional, 1, 4, 1),
    NUMBER(sublet_order, suspend_ms, kOptional, 0, 4 * WEEK_MS, 0),
    LIST(sublet_order, "own_file", own_files, own_file_count, SUBLET_MAX_OWN_FILES),
    NUMBER(sublet_order, save_signal, kOptional, 0, 64, 0),
    TEXT(sublet_order, boot_id, kRequired, 64),
};

static const struct field kPlacesFields[] = {
    LIST(sublet_places, "hidden", hidden, hidden_count, SUBLET_MAX_PLACES),
    LIST(sublet_places, "grant", grants, grant_count, SUBLET_MAX_PLACES),
};

static const struct field kRecordFields[] = {
    NUMBER(sublet_record, job, kRequired, 1, INT64_MAX, 0),
    NUMBER(sublet_record, attempt, kRequired, 1, UINT32_MAX, 0),
    TEXT(sublet_record, boot_id, kRequired, 64),
    NUMBER(sublet_record, shepherd_pid, kRequired, 1, INT32_MAX, 0),
    NUMBER(sublet_record, shepherd_start, kRequired, 0, INT64_MAX, 0),
    NUMBER(sublet_record, job_pid, kRequired, 1, INT32_MAX, 0),
    NUMBER(sublet_record, job_start, kRequired, 0, INT64_MAX, 0),
    NUMBER(sublet_record, session, kRequired, 1, INT32_MAX, 0),
    NUMBER(sublet_record, uid, kRequired, -1, HIGHEST_UID, -1),
    TEXT(sublet_record, cgroup_unified, kOptional, SUBLET_PATH_MAX_BYTES),
    TEXT(sublet_record, cgroup_cpu, kOptional, SUBLET_PATH_MAX_BYTES),
    TEXT(sublet_record, cgroup_memory, kOptional, SUBLET_PATH_MAX_BYTES),
    NUMBER(sublet_record, cpu_before_us, kOptional, 0, INT64_MAX, 0),
    NUMBER(sublet_record, started_ns, kRequired, 0, INT64_MAX, 0),
};

#define FACT(member) NUMBER(sublet_exit, member, kOptional, INT64_MIN, INT64_MAX, 0)
#define STEP(member) NUMBER(sublet_exit, member, kOptional, -1, INT64_MAX, -1)

static const struct field kExitFields[] = {
    NUMBER(sublet_exit, job, kRequired, 1, INT64_MAX, 0),
    NUMBER(sublet_exit, attempt, kRequired, 1, UINT32_MAX, 0),
    NUMBER(sublet_exit, outcome, kRequired, 1, INT32_MAX, 0),
    NUMBER(sublet_exit, code, kRequired, INT32_MIN, INT32_MAX, 0),
    TEXT(sublet_exit, step, kOptional, 64),
    TEXT(sublet_exit, place, kOptional, SUBLET_PATH_MAX_BYTES),
    FACT(limit),
    FACT(bound),
    FACT(reason),
    FACT(asked),
    FACT(left),
    FACT(killed),
    FACT(no_handler),
    FACT(unsaved),
    FACT(cpu_user_us),
    FACT(cpu_system_us),
    FACT(wall_us),
    FACT(memory_peak),
    FACT(processes_peak),
    NUMBER(sublet_exit, network_bytes, kOptional, -1, INT64_MAX, -1),
    FACT(switches_voluntary),
    FACT(switches_forced),
    FACT(aware),
    FACT(generation),
    FACT(checkpoint_bytes),
    FACT(saved_ns),
    FACT(save_errno),
    NUMBER(sublet_exit, progress_ppm, kOptional, -1, 1000000, -1),
    FACT(resumed_generation),
    NUMBER(sublet_exit, resumed_progress_ppm, kOptional, -1, 1000000, -1),
    STEP(quiesce_ns),
    STEP(told_ns),
    STEP(demoted_ns),
    STEP(save_asked_ns),
    STEP(checkpointed_ns),
    FACT(sensed),
    FACT(frozen_ms),
    FACT(stdout_bytes),
    FACT(stderr_bytes),
    FACT(stdout_dropped),
    FACT(stderr_dropped),
    FACT(started_ns),
    FACT(ended_ns),
    TEXT(sublet_exit, boot_id, kOptional, 64),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct sublet_format sublet_order_format = {"sublet-order", kOrderFields, COUNT(kOrderFields),
                                                  1};
const struct sublet_format sublet_places_format = {"sublet-places", kPlacesFields,
                                                   COUNT(kPlacesFields), 1};
const struct sublet_format sublet_record_format = {"sublet-record", kRecordFields,
                                                   COUNT(kRecordFields), 0};
const struct sublet_format sublet_exit_format = {"sublet-exit", kExitFields, COUNT(kExitFields), 0};

_Static_assert(COUNT(kExitFields) <= 64 && COUNT(kOrderFields) <= 64, "seen keys fit one word");

static void* member(const void* base, uint32_t offset) { return (char*)(uintptr_t)base + offset; }

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Decodes the zero-terminated value in place; returns its length, or -1. */
static int64_t decode(char* value) {
  char* to = value;
  for (const char* from = value; *from; ++from) {
    if (*from < 0x21 || *from > 0x7e) return -1;
    if (*from != '%') {
      *to++ = *from;
      continue;
    }
    int high = hex_digit(from[1]);
    int low = high < 0 ? -1 : hex_digit(from[2]);
    if (low < 0 || (high == 0 && low == 0)) return -1;
    *to++ = (char)(high * 16 + low);
    from += 2;
  }
  *to = 0;
  return to - value;
}

static const char* parse_number(const char* value, const struct field* field, int64_t* out) {
  int negative = *value == '-';
  const char* digit = value + negative;
  int64_t number = 0;
  if (!*digit) return "a number is empty";
  for (; *digit; ++digit) {
    if (*digit < '0' || *digit > '9') return "a number has an invalid digit";
    /* Accumulated as a negative number: -INT64_MIN would overflow. */
    if (__builtin_mul_overflow(number, 10, &number) ||
        __builtin_sub_overflow(number, *digit - '0', &number))
      return "a number is too large";
  }
  if (!negative && __builtin_sub_overflow(0, number, &number)) return "a number is too large";
  if (number < field->low || number > field->high) return "a number is out of its range";
  *out = number;
  return NULL;
}

static const char* take(const struct field* field, char* value, void* out, int repeated) {
  if (repeated && field->kind != kList) return "a key occurs twice";
  if (field->kind == kNumber) return parse_number(value, field, member(out, field->offset));
  int64_t length = decode(value);
  if (length < 0) return "a value is not encoded correctly";
  if (field->kind == kText) {
    if (length > field->high) return "a value is too long";
    *(const char**)member(out, field->offset) = value;
    return NULL;
  }
  size_t* count = member(out, field->count_offset);
  if (*count >= (size_t)field->high) return "a list is too long";
  ((char**)member(out, field->offset))[(*count)++] = value;
  return NULL;
}

static void set_absent(const struct sublet_format* format, void* out) {
  for (size_t i = 0; i < format->count; ++i) {
    const struct field* field = &format->fields[i];
    if (field->kind == kNumber) *(int64_t*)member(out, field->offset) = field->absent;
    if (field->kind == kText) *(const char**)member(out, field->offset) = "";
    if (field->kind == kList) *(size_t*)member(out, field->count_offset) = 0;
  }
}

static const char* finish(const struct sublet_format* format, uint64_t seen, void* out) {
  for (size_t i = 0; i < format->count; ++i) {
    const struct field* field = &format->fields[i];
    if (field->required && !(seen >> i & 1)) return "a required key is missing";
    if (field->kind == kList)
      ((char**)member(out, field->offset))[*(size_t*)member(out, field->count_offset)] = NULL;
  }
  return NULL;
}

/* What has been read of a text. */
struct progress {
  uint64_t seen; /* keys, a bit for each */
  size_t last;   /* the newest one: in a text that was printed here the next one is near */
};

static const char* parse_line(const struct sublet_format* format, char* line, void* out,
                              struct progress* progress) {
  char* space = strchr(line, ' ');
  if (!space) return "a line has no value";
  *space = 0;
  for (size_t tried = 0; tried < format->count; ++tried) {
    const size_t i = (progress->last + tried) % format->count;
    if (strcmp(format->fields[i].name, line) != 0) continue;
    int repeated = progress->seen >> i & 1;
    progress->seen |= 1ull << i;
    progress->last = i;
    return take(&format->fields[i], space + 1, out, repeated);
  }
  return format->refuse_unknown ? "a key is unknown" : NULL;
}

static int is_title(const struct sublet_format* format, const char* line) {
  size_t length = strlen(format->title);
  return strncmp(line, format->title, length) == 0 && strcmp(line + length, " 1") == 0;
}

const char* sublet_format_parse(const struct sublet_format* format, char* text, size_t size,
                                void* out, unsigned* line_number) {
  struct progress progress = {0, 0};
  *line_number = 0;
  set_absent(format, out);
  text[size] = 0;
  if (memchr(text, 0, size)) return "the file contains a NUL byte";
  char* line = text;
  while (line < text + size) {
    ++*line_number;
    char* end = memchr(line, '\n', (size_t)(text + size - line));
    if (!end) return "the last line is not complete";
    *end = 0;
    if (*line_number == 1) {
      if (!is_title(format, line)) return "the first line is not the title of this format";
    } else if (strcmp(line, "end") == 0) {
      return end + 1 == text + size ? finish(format, progress.seen, out)
                                    : "there are bytes after the end";
    } else {
      const char* error = parse_line(format, line, out, &progress);
      if (error) return error;
    }
    line = end + 1;
  }
  return "the end is missing";
}

struct printer {
  char* out;
  size_t size;
  size_t capacity;
};

static void put(struct printer* p, char c) {
  if (p->size < p->capacity) p->out[p->size] = c;
  ++p->size;
}

static void put_plain(struct printer* p, const char* text) {
  for (; *text; ++text) put(p, *text);
}

static void put_encoded(struct printer* p, const char* text) {
  static const char kHex[] = "0123456789ABCDEF";
  for (; text && *text; ++text) {
    if (*text >= 0x21 && *text <= 0x7e && *text != '%') {
      put(p, *text);
    } else {
      put(p, '%');
      put(p, kHex[(unsigned char)*text >> 4]);
      put(p, kHex[*text & 15]);
    }
  }
}

static void put_number(struct printer* p, int64_t number) {
  char digits[24];
  int count = 0;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do digits[count++] = (char)('0' + rest % 10);
  while ((rest /= 10) != 0);
  if (number < 0) put(p, '-');
  while (count > 0) put(p, digits[--count]);
}

static void put_line(struct printer* p, const char* key, const char* value) {
  put_plain(p, key);
  put(p, ' ');
  put_encoded(p, value);
  put(p, '\n');
}

/* Whether leaving it out means the same. */
static int is_absent(const struct field* field, const void* in) {
  if (field->required != kOptional) return 0;
  if (field->kind == kNumber) return *(const int64_t*)member(in, field->offset) == field->absent;
  return field->kind == kText && **(const char* const*)member(in, field->offset) == 0;
}

size_t sublet_format_print(const struct sublet_format* format, const void* in, char* out,
                           size_t capacity) {
  struct printer p = {out, 0, capacity};
  put_plain(&p, format->title);
  put_plain(&p, " 1\n");
  for (size_t i = 0; i < format->count; ++i) {
    const struct field* field = &format->fields[i];
    /* Readers of an earlier version refuse keys that they do not know. */
    if (format->refuse_unknown && is_absent(field, in)) continue;
    if (field->kind == kNumber) {
      put_plain(&p, field->name);
      put(&p, ' ');
      put_number(&p, *(const int64_t*)member(in, field->offset));
      put(&p, '\n');
    } else if (field->kind == kText) {
      put_line(&p, field->name, *(const char* const*)member(in, field->offset));
    } else {
      size_t count = *(const size_t*)member(in, field->count_offset);
      for (size_t n = 0; n < count; ++n)
        put_line(&p, field->name, ((char* const*)member(in, field->offset))[n]);
    }
  }
  put_plain(&p, "end\n");
  return p.size;
}
