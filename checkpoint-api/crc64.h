/* CRC-64/XZ (polynomial 0x42f0e1eba9ea3693, reflected, all ones in and out).
 * Detects every error burst of up to 64 bits; misses other damage with a probability of
 * 2^-64. No protection against forgery. Any thread. */
#ifndef SUBLET_CHECKPOINT_API_CRC64_H_
#define SUBLET_CHECKPOINT_API_CRC64_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The checksum of what `crc` covers followed by `bytes`; start with 0. */
uint64_t sublet_crc64(uint64_t crc, const void* bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* SUBLET_CHECKPOINT_API_CRC64_H_ */
