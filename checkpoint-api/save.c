/* Writes the next generation. At any time `newest` or `previous` is a complete
 * generation: the new one is written and synced under a temporary name, the old one gets
 * a second name, and one rename puts the new one in place. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "checkpoint-api/internal.h"

static void write_elements(struct sublet_section* section, struct sublet_checkpoint_stream* s) {
  size_t count = (size_t)section->entry.count;
  const void* elements = section->elements;
  if (section->place != NULL) {
    elements = section->place(&count, section->user);
    section->entry.count = count;
  }
  if (elements == NULL && count != 0) {
    s->error = ECANCELED;
    return;
  }
  sublet_checkpoint_write(s, elements, count, (enum sublet_checkpoint_type)section->entry.type);
}

uint64_t sublet_payload_bytes(const struct sublet_checkpoint* c) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < c->section_count; ++i) {
    const struct sublet_section* section = &c->sections[i];
    size_t count = (size_t)section->entry.count;
    if (section->place != NULL) section->place(&count, section->user);
    bytes += count * sublet_type_width(section->entry.type);
  }
  return bytes;
}

static int write_sections(struct sublet_checkpoint* c, struct sublet_checkpoint_stream* s) {
  for (uint32_t i = 0; i < c->section_count; ++i) {
    struct sublet_section* section = &c->sections[i];
    s->in_section = 0;
    if (section->save == NULL) {
      write_elements(section, s);
    } else {
      if (section->save(s, section->user) != 0 && s->error == 0) s->error = ECANCELED;
      section->entry.count = s->in_section;
    }
    if (s->error != 0) return s->error;
    sublet_entry_encode(&section->entry,
                        c->head + SUBLET_HEADER_BYTES + (size_t)i * SUBLET_ENTRY_BYTES);
  }
  return sublet_stream_flush(s);
}

static int write_head(struct sublet_checkpoint* c, struct sublet_checkpoint_stream* s) {
  const size_t head_bytes = sublet_head_bytes(c->section_count);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct sublet_header header = {
      .version = SUBLET_FORMAT_VERSION,
      .sections = c->section_count,
      .generation = c->next_generation,
      .payload_bytes = s->offset - head_bytes,
      .saved_utc_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000,
      .progress_ppm = __atomic_load_n(&c->progress_ppm, __ATOMIC_RELAXED),
      .layout = c->layout,
      .payload_crc = s->crc,
  };
  memcpy(header.program, c->program, sizeof header.program);
  sublet_head_encode(&header, c->head);
  for (size_t done = 0; done < head_bytes;) {
    const ssize_t n = c->disk->write(s->fd, c->head + done, head_bytes - done, (off_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    done += (size_t)n;
  }
  return 0;
}

/* Syncs again if interrupted by a signal. */
static int sync_again(const struct sublet_disk* disk, int fd) {
  while (disk->sync(fd) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

static int write_unfinished(struct sublet_checkpoint* c, uint64_t* bytes) {
  const int fd = c->disk->create(c->folder, c->unfinished);
  if (fd < 0) return errno;
  struct sublet_checkpoint_stream s;
  sublet_stream_start(&s, c, fd, 1, sublet_head_bytes(c->section_count), 0);
  int error = write_sections(c, &s);
  if (error == 0) error = write_head(c, &s);
  if (error == 0) error = sync_again(c->disk, fd);
  if (c->disk->close(fd) != 0 && error == 0 && errno != EINTR) error = errno;
  *bytes = s.offset;
  return error;
}

/* Gives the newest a second name, replacing the generation before it. Between the two
 * steps only the newest exists, and it is complete. */
static int keep_newest(struct sublet_checkpoint* c) {
  if (c->disk->remove(c->folder, c->previous) != 0 && errno != ENOENT) return errno;
  if (c->disk->link(c->folder, c->newest, c->previous) == 0) return 0;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) return errno;
  /* A file system without links: only `previous` exists, for a moment or, if the next step
   * fails, until the next save, which must keep it. */
  if (c->disk->rename(c->folder, c->newest, c->previous) != 0) return errno;
  c->newest_is_whole = 0;
  return 0;
}

void sublet_name_files(struct sublet_checkpoint* c, const char* base) {
  snprintf(c->newest, sizeof c->newest, "%s", base);
  snprintf(c->previous, sizeof c->previous, "%s.previous", base);
  snprintf(c->unfinished, sizeof c->unfinished, "%s.unfinished", base);
  snprintf(c->damaged, sizeof c->damaged, "%s.damaged", base);
  snprintf(c->lock_name, sizeof c->lock_name, "%s.lock", base);
}

int sublet_save_file(struct sublet_checkpoint* c, uint64_t* bytes) {
  if (c->folder < 0) return c->folder_errno;
  int error = write_unfinished(c, bytes);
  if (error == 0 && c->newest_is_whole) error = keep_newest(c);
  if (error == 0 && c->disk->rename(c->folder, c->unfinished, c->newest) != 0) error = errno;
  if (error != 0) {
    c->disk->remove(c->folder, c->unfinished); /* frees its space; the next save recreates it */
    return error;
  }
  /* The file is in place; its number is used up even if the folder cannot be synced. */
  c->newest_is_whole = 1;
  const uint64_t generation = c->next_generation++;
  error = sync_again(c->disk, c->folder);
  if (error != 0 && error != EINVAL)
    return error; /* EINVAL: this file system cannot sync folders */
  c->generation = generation;
  return 0;
}
