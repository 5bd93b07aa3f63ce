/* The head of a checkpoint file, in memory and as bytes; docs/checkpoint-format.md
 * describes it. Pure: no files, no allocation. The parser trusts nothing. */
#ifndef SUBLET_CHECKPOINT_API_FILE_FORMAT_H_
#define SUBLET_CHECKPOINT_API_FILE_FORMAT_H_

#include <stddef.h>
#include <stdint.h>

#include "checkpoint-api/sublet_checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SUBLET_FORMAT_VERSION = 1,
  SUBLET_HEADER_BYTES = 128,
  SUBLET_ENTRY_BYTES = 64,
  SUBLET_STREAM = 64, /* type of a section written by callbacks; its elements are bytes */
  SUBLET_PPM_MAX = 1000000
};

struct sublet_header {
  uint32_t version;
  uint32_t sections;
  uint64_t generation;
  uint64_t payload_bytes;
  int64_t saved_utc_us;
  int32_t progress_ppm; /* -1: unknown */
  uint32_t layout;
  char program[SUBLET_CHECKPOINT_MAX_PROGRAM + 1]; /* NUL-terminated */
  uint64_t payload_crc;
};

struct sublet_entry {
  uint64_t count; /* elements */
  uint32_t type;  /* enum sublet_checkpoint_type or SUBLET_STREAM */
  char name[SUBLET_CHECKPOINT_MAX_NAME + 1];
};

/* Bytes of one element; 0 for an unknown type. */
size_t sublet_type_width(uint32_t type);

/* Size of an entry's payload in *bytes; 0 if the type is unknown or the size overflows. */
int sublet_entry_bytes(const struct sublet_entry* entry, uint64_t* bytes);

static inline size_t sublet_head_bytes(uint32_t sections) {
  return SUBLET_HEADER_BYTES + (size_t)sections * SUBLET_ENTRY_BYTES;
}

/* Copies elements of `width` bytes between the machine's order and the file's. */
void sublet_copy_elements(void* to, const void* from, size_t bytes, size_t width, int swap);
int sublet_host_swaps(void); /* 1 on a big-endian machine */

void sublet_entry_encode(const struct sublet_entry* entry, unsigned char out[SUBLET_ENTRY_BYTES]);
/* Encodes the header and adds the checksum of the head, which already holds the entries. */
void sublet_head_encode(const struct sublet_header* header, unsigned char* head);

/* Decodes the first SUBLET_HEADER_BYTES of a file of `file_bytes`. NULL, or what is wrong
 * with them. Checks magic and sizes; the checksum needs the whole head. */
const char* sublet_header_decode(const unsigned char* head, uint64_t file_bytes,
                                 struct sublet_header* header);
/* Whether the head (header and entries) matches its checksum. */
int sublet_head_sealed(const unsigned char* head, uint32_t sections);
uint64_t sublet_header_seal(const unsigned char* head); /* the checksum in the header */
/* NULL, or what is wrong with an entry. */
const char* sublet_entry_decode(const unsigned char in[SUBLET_ENTRY_BYTES],
                                struct sublet_entry* entry);

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_CHECKPOINT_API_FILE_FORMAT_H_ */
