/* Numbers in the file's byte order on any machine: least significant byte first. */
#ifndef SUBLET_CHECKPOINT_API_LITTLE_ENDIAN_H_
#define SUBLET_CHECKPOINT_API_LITTLE_ENDIAN_H_

#include <stdint.h>

static inline uint32_t sublet_load_u32(const unsigned char* at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t sublet_load_u64(const unsigned char* at) {
  return (uint64_t)sublet_load_u32(at) | (uint64_t)sublet_load_u32(at + 4) << 32;
}

static inline void sublet_store_u32(unsigned char* at, uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = (unsigned char)(value >> (8 * i));
}

static inline void sublet_store_u64(unsigned char* at, uint64_t value) {
  for (int i = 0; i < 8; ++i) at[i] = (unsigned char)(value >> (8 * i));
}

#endif /* SUBLET_CHECKPOINT_API_LITTLE_ENDIAN_H_ */
