/* Reads a generation back. The file may be damaged or hostile: everything is checked
 * before it is used, and allocations depend only on what the program itself registered.
 * Two passes: the first verifies, the second restores. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint-api/crc64.h"
#include "checkpoint-api/internal.h"

static enum sublet_load_result fail(struct sublet_checkpoint* c, enum sublet_load_result result,
                                    const char* why) {
  snprintf(c->message, sizeof c->message, "%s", why);
  return result;
}

static enum sublet_load_result damaged(struct sublet_checkpoint* c, const char* why) {
  return fail(c, SUBLET_LOAD_DAMAGED, why);
}

/* A name from the file, made safe for a terminal. */
static const char* printable(const char* name, char* out, size_t size) {
  size_t i = 0;
  for (; name[i] != 0 && i + 1 < size; ++i) {
    out[i] = name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '?';
  }
  out[i] = 0;
  return out;
}

static int read_at(int fd, unsigned char* to, size_t size, uint64_t offset) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = pread(fd, to + done, size - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EBADMSG;
    done += (size_t)n;
  }
  return 0;
}

/* The checksum of `bytes` from `offset` on; uses the handle's buffer. */
static int crc_of(struct sublet_checkpoint* c, int fd, uint64_t offset, uint64_t bytes,
                  uint64_t* crc) {
  while (bytes > 0) {
    const size_t n = bytes < SUBLET_STREAM_BUFFER ? (size_t)bytes : SUBLET_STREAM_BUFFER;
    const int error = read_at(fd, c->buffer, n, offset);
    if (error != 0) return error;
    *crc = sublet_crc64(*crc, c->buffer, n);
    offset += n;
    bytes -= n;
  }
  return 0;
}

/* Verifies the head's checksum without allocating memory of a size given by the file:
 * first the part before the checksum, then the entries after it. */
static int head_verifies(struct sublet_checkpoint* c, int fd, const unsigned char* start,
                         uint32_t sections) {
  const size_t sealed = SUBLET_HEADER_BYTES - 8;
  uint64_t crc = sublet_crc64(0, start, sealed);
  const uint64_t entries = (uint64_t)sections * SUBLET_ENTRY_BYTES;
  if (crc_of(c, fd, SUBLET_HEADER_BYTES, entries, &crc) != 0) return 0;
  return crc == sublet_header_seal(start);
}

static struct sublet_section* find_section(struct sublet_checkpoint* c, const char* name,
                                           uint32_t layout) {
  for (uint32_t i = 0; i < c->section_count; ++i) {
    struct sublet_section* section = &c->sections[i];
    if (sublet_section_in(section, layout) && strcmp(section->entry.name, name) == 0) {
      return section;
    }
  }
  return NULL;
}

/* How many sections a file of that layout has. */
static uint32_t expected_sections(const struct sublet_checkpoint* c, uint32_t layout) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->section_count; ++i) {
    count += sublet_section_in(&c->sections[i], layout) != 0;
  }
  return count;
}

static enum sublet_load_result refuse_layout(struct sublet_checkpoint* c, uint32_t layout) {
  if (c->oldest_layout == c->layout) {
    snprintf(c->message, sizeof c->message, "it has layout %u, this program has layout %u", layout,
             c->layout);
  } else {
    snprintf(c->message, sizeof c->message, "it has layout %u, this program reads layouts %u to %u",
             layout, c->oldest_layout, c->layout);
  }
  return SUBLET_LOAD_REFUSED;
}

/* Whether the file was saved by this program in this layout. */
static enum sublet_load_result compare_header(struct sublet_checkpoint* c,
                                              const struct sublet_header* header) {
  char program[sizeof header->program];
  if (header->version != SUBLET_FORMAT_VERSION) {
    snprintf(c->message, sizeof c->message,
             "it has format version %u, this program reads version %u", header->version,
             (unsigned)SUBLET_FORMAT_VERSION);
    return SUBLET_LOAD_REFUSED;
  }
  if (strcmp(header->program, c->program) != 0) {
    snprintf(c->message, sizeof c->message, "it was saved by program \"%s\", this is \"%s\"",
             printable(header->program, program, sizeof program), c->program);
    return SUBLET_LOAD_REFUSED;
  }
  if (header->layout < c->oldest_layout || header->layout > c->layout) {
    return refuse_layout(c, header->layout);
  }
  const uint32_t expected = expected_sections(c, header->layout);
  if (header->sections != expected) {
    snprintf(c->message, sizeof c->message, "it has %u sections, this program has %u%s",
             header->sections, expected, header->layout == c->layout ? "" : " in that layout");
    return SUBLET_LOAD_REFUSED;
  }
  return SUBLET_LOAD_DONE;
}

static enum sublet_load_result compare_entry(struct sublet_checkpoint* c,
                                             const struct sublet_entry* entry, uint32_t layout) {
  char name[sizeof entry->name];
  struct sublet_section* section = find_section(c, entry->name, layout);
  if (section == NULL) {
    snprintf(c->message, sizeof c->message, "this program has no section \"%s\"",
             printable(entry->name, name, sizeof name));
    return SUBLET_LOAD_REFUSED;
  }
  if (section->found) return damaged(c, "two of its sections have the same name");
  section->found = 1;
  if (entry->type != section->entry.type ||
      (section->restore == NULL && section->room == NULL && entry->count != section->entry.count)) {
    snprintf(c->message, sizeof c->message,
             "its section \"%s\" has %llu elements of type %u, this program's %llu of type %u",
             section->entry.name, (unsigned long long)entry->count, entry->type,
             (unsigned long long)section->entry.count, section->entry.type);
    return SUBLET_LOAD_REFUSED;
  }
  return SUBLET_LOAD_DONE;
}

/* Compares all entries, now in c->head, with the program's sections. */
static enum sublet_load_result compare_entries(struct sublet_checkpoint* c,
                                               const struct sublet_header* header) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < c->section_count; ++i) c->sections[i].found = 0;
  for (uint32_t i = 0; i < header->sections; ++i) {
    struct sublet_entry entry;
    uint64_t bytes;
    const char* wrong =
        sublet_entry_decode(c->head + SUBLET_HEADER_BYTES + (size_t)i * SUBLET_ENTRY_BYTES, &entry);
    if (wrong != NULL) return damaged(c, wrong);
    if (!sublet_entry_bytes(&entry, &bytes) || __builtin_add_overflow(total, bytes, &total)) {
      return damaged(c, "its sections are impossibly large");
    }
    const enum sublet_load_result result = compare_entry(c, &entry, header->layout);
    if (result != SUBLET_LOAD_DONE) return result;
  }
  if (total != header->payload_bytes) return damaged(c, "its sections do not fill it");
  return SUBLET_LOAD_DONE;
}

/* Whether the section was read. The file's size bounds what it asks `room` for. */
static int restore_section(struct sublet_section* section, const struct sublet_entry* entry,
                           struct sublet_checkpoint_stream* s) {
  if (section->restore != NULL) return section->restore(s, section->user) == 0;
  void* elements = section->elements;
  if (section->room != NULL) {
    if (s->in_section > SIZE_MAX / 2) return 0; /* only where a file can exceed the memory */
    elements = section->room((size_t)entry->count, section->user);
    if (elements == NULL && entry->count != 0) return 0;
  }
  return sublet_checkpoint_read(s, elements, (size_t)entry->count,
                                (enum sublet_checkpoint_type)entry->type) == 0;
}

static enum sublet_load_result restore_sections(struct sublet_checkpoint* c, int fd,
                                                const struct sublet_header* header) {
  struct sublet_checkpoint_stream s;
  sublet_stream_start(&s, c, fd, 0, sublet_head_bytes(header->sections), header->payload_bytes);
  for (uint32_t i = 0; i < header->sections; ++i) {
    struct sublet_entry entry;
    sublet_entry_decode(c->head + SUBLET_HEADER_BYTES + (size_t)i * SUBLET_ENTRY_BYTES, &entry);
    struct sublet_section* section = find_section(c, entry.name, header->layout);
    sublet_entry_bytes(&entry, &s.in_section);
    if (!restore_section(section, &entry, &s) || s.error != 0 || s.in_section != 0) {
      snprintf(c->message, sizeof c->message, "this program cannot read its section \"%s\"",
               section->entry.name);
      return SUBLET_LOAD_REFUSED;
    }
  }
  /* Already verified once: a difference means that it is being changed right now. */
  if (s.crc != header->payload_crc) return fail(c, SUBLET_LOAD_REFUSED, "it is being changed");
  return SUBLET_LOAD_DONE;
}

static enum sublet_load_result load_open_file(struct sublet_checkpoint* c, int fd,
                                              struct sublet_header* header) {
  unsigned char start[SUBLET_HEADER_BYTES];
  struct stat status;
  if (fstat(fd, &status) != 0) return damaged(c, strerror(errno));
  if (!S_ISREG(status.st_mode)) return damaged(c, "it is not a regular file");
  if (status.st_size < SUBLET_HEADER_BYTES) return damaged(c, "it is too short");
  if (read_at(fd, start, sizeof start, 0) != 0) return damaged(c, "it cannot be read");
  const char* wrong = sublet_header_decode(start, (uint64_t)status.st_size, header);
  if (wrong != NULL) return damaged(c, wrong);
  if (!head_verifies(c, fd, start, header->sections)) {
    return damaged(c, "its head does not match its checksum");
  }
  uint64_t crc = 0;
  const int error = crc_of(c, fd, sublet_head_bytes(header->sections), header->payload_bytes, &crc);
  if (error != 0) return damaged(c, strerror(error));
  if (crc != header->payload_crc) return damaged(c, "its contents do not match their checksum");
  enum sublet_load_result result = compare_header(c, header);
  if (result != SUBLET_LOAD_DONE) return result;
  /* No more sections than the program has, so they fit in c->head. */
  if (read_at(fd, c->head, sublet_head_bytes(header->sections), 0) != 0 ||
      !sublet_head_sealed(c->head, header->sections)) {
    return damaged(c, "it is being changed");
  }
  result = compare_entries(c, header);
  return result == SUBLET_LOAD_DONE ? restore_sections(c, fd, header) : result;
}

enum sublet_load_result sublet_load_file(struct sublet_checkpoint* c, const char* name,
                                         struct sublet_header* header) {
  /* Non-blocking, since it might be a pipe. */
  const int fd = openat(c->folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return errno == ENOENT ? SUBLET_LOAD_NONE : damaged(c, strerror(errno));
  const enum sublet_load_result result = load_open_file(c, fd, header);
  close(fd);
  return result;
}
