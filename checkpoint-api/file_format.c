#include "checkpoint-api/file_format.h"

#include <string.h>

#include "checkpoint-api/crc64.h"
#include "checkpoint-api/little_endian.h"

/* Offsets in the header. */
enum {
  kVersion = 8,
  kSections = 12,
  kGeneration = 16,
  kPayloadBytes = 24,
  kSavedUtc = 32,
  kProgress = 40,
  kLayout = 44,
  kProgram = 48,
  kPayloadCrc = 112,
  kHeadCrc = 120
};

/* A high byte, line ends and Ctrl-Z, so that a text-mode transfer is detected. */
static const unsigned char kMagic[8] = {0x89, 'S', 'B', 'C', 'K', '\r', '\n', 0x1a};

size_t sublet_type_width(uint32_t type) {
  switch (type) {
    case SUBLET_INT8:
    case SUBLET_UINT8:
    case SUBLET_STREAM:
      return 1;
    case SUBLET_INT16:
    case SUBLET_UINT16:
      return 2;
    case SUBLET_INT32:
    case SUBLET_UINT32:
    case SUBLET_FLOAT32:
      return 4;
    case SUBLET_INT64:
    case SUBLET_UINT64:
    case SUBLET_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

int sublet_entry_bytes(const struct sublet_entry* entry, uint64_t* bytes) {
  const size_t width = sublet_type_width(entry->type);
  return width != 0 && !__builtin_mul_overflow(entry->count, (uint64_t)width, bytes);
}

int sublet_host_swaps(void) { return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__; }

void sublet_copy_elements(void* to, const void* from, size_t bytes, size_t width, int swap) {
  if (!swap || width == 1) {
    if (bytes != 0) memcpy(to, from, bytes);
    return;
  }
  unsigned char* out = to;
  const unsigned char* in = from;
  for (size_t at = 0; at < bytes; at += width) {
    for (size_t i = 0; i < width; ++i) out[at + i] = in[at + width - 1 - i];
  }
}

/* A name of at most size - 1 bytes, the rest NUL. */
static int padded_name(const unsigned char* at, size_t size, char* name) {
  memcpy(name, at, size);
  const size_t length = strnlen(name, size);
  if (length == 0 || length == size) return 0;
  for (size_t i = length; i < size; ++i) {
    if (name[i] != 0) return 0;
  }
  return 1;
}

void sublet_entry_encode(const struct sublet_entry* entry, unsigned char out[SUBLET_ENTRY_BYTES]) {
  memset(out, 0, SUBLET_ENTRY_BYTES);
  sublet_store_u64(out, entry->count);
  sublet_store_u32(out + 8, entry->type);
  memcpy(out + 16, entry->name, strnlen(entry->name, SUBLET_CHECKPOINT_MAX_NAME));
}

const char* sublet_entry_decode(const unsigned char in[SUBLET_ENTRY_BYTES],
                                struct sublet_entry* entry) {
  uint64_t bytes;
  entry->count = sublet_load_u64(in);
  entry->type = sublet_load_u32(in + 8);
  if (!padded_name(in + 16, sizeof entry->name, entry->name))
    return "a section's name is malformed";
  if (sublet_load_u32(in + 12) != 0) return "a reserved field is not zero";
  if (!sublet_entry_bytes(entry, &bytes)) return "a section's type or size is impossible";
  return NULL;
}

static uint64_t head_crc(const unsigned char* head, uint32_t sections) {
  const uint64_t crc = sublet_crc64(0, head, kHeadCrc);
  return sublet_crc64(crc, head + SUBLET_HEADER_BYTES, (size_t)sections * SUBLET_ENTRY_BYTES);
}

void sublet_head_encode(const struct sublet_header* header, unsigned char* head) {
  memset(head, 0, SUBLET_HEADER_BYTES);
  memcpy(head, kMagic, sizeof kMagic);
  sublet_store_u32(head + kVersion, header->version);
  sublet_store_u32(head + kSections, header->sections);
  sublet_store_u64(head + kGeneration, header->generation);
  sublet_store_u64(head + kPayloadBytes, header->payload_bytes);
  sublet_store_u64(head + kSavedUtc, (uint64_t)header->saved_utc_us);
  sublet_store_u32(head + kProgress, (uint32_t)header->progress_ppm);
  sublet_store_u32(head + kLayout, header->layout);
  memcpy(head + kProgram, header->program, strnlen(header->program, SUBLET_CHECKPOINT_MAX_PROGRAM));
  sublet_store_u64(head + kPayloadCrc, header->payload_crc);
  sublet_store_u64(head + kHeadCrc, head_crc(head, header->sections));
}

uint64_t sublet_header_seal(const unsigned char* head) { return sublet_load_u64(head + kHeadCrc); }

int sublet_head_sealed(const unsigned char* head, uint32_t sections) {
  return sublet_header_seal(head) == head_crc(head, sections);
}

const char* sublet_header_decode(const unsigned char* head, uint64_t file_bytes,
                                 struct sublet_header* header) {
  if (file_bytes < SUBLET_HEADER_BYTES) return "it is too short";
  if (memcmp(head, kMagic, sizeof kMagic) != 0) return "it is not a checkpoint";
  header->version = sublet_load_u32(head + kVersion);
  header->sections = sublet_load_u32(head + kSections);
  header->generation = sublet_load_u64(head + kGeneration);
  header->payload_bytes = sublet_load_u64(head + kPayloadBytes);
  header->saved_utc_us = (int64_t)sublet_load_u64(head + kSavedUtc);
  header->progress_ppm = (int32_t)sublet_load_u32(head + kProgress);
  header->layout = sublet_load_u32(head + kLayout);
  header->payload_crc = sublet_load_u64(head + kPayloadCrc);
  if (header->sections > SUBLET_CHECKPOINT_MAX_SECTIONS) return "it has too many sections";
  const uint64_t head_bytes = sublet_head_bytes(header->sections);
  if (file_bytes < head_bytes || header->payload_bytes != file_bytes - head_bytes) {
    return "its size does not match its head";
  }
  if (!padded_name(head + kProgram, sizeof header->program, header->program)) {
    return "its program name is malformed";
  }
  if (header->generation == 0 || header->generation > INT64_MAX)
    return "its generation is impossible";
  if (header->progress_ppm < -1 || header->progress_ppm > SUBLET_PPM_MAX) {
    return "its progress is impossible";
  }
  return NULL;
}
