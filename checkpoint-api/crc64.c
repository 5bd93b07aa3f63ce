#include "checkpoint-api/crc64.h"

#include <pthread.h>

#include "checkpoint-api/little_endian.h"

/* table[k][b]: the effect of byte b followed by k more bytes, so that eight bytes are
 * processed per step. */
static uint64_t table[8][256];

static void make_table(void) {
  const uint64_t reflected_polynomial = 0xc96c5795d7870f42u;
  for (unsigned b = 0; b < 256; ++b) {
    uint64_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? reflected_polynomial : 0);
    table[0][b] = crc;
  }
  for (unsigned k = 1; k < 8; ++k) {
    for (unsigned b = 0; b < 256; ++b) {
      const uint64_t before = table[k - 1][b];
      table[k][b] = table[0][before & 0xff] ^ (before >> 8);
    }
  }
}

uint64_t sublet_crc64(uint64_t crc, const void* bytes, size_t size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_table);
  const unsigned char* at = bytes;
  crc = ~crc;
  for (; size >= 8; at += 8, size -= 8) {
    const uint64_t x = crc ^ sublet_load_u64(at);
    crc = table[7][x & 0xff] ^ table[6][(x >> 8) & 0xff] ^ table[5][(x >> 16) & 0xff] ^
          table[4][(x >> 24) & 0xff] ^ table[3][(x >> 32) & 0xff] ^ table[2][(x >> 40) & 0xff] ^
          table[1][(x >> 48) & 0xff] ^ table[0][x >> 56];
  }
  for (; size > 0; ++at, --size) crc = table[0][(crc ^ *at) & 0xff] ^ (crc >> 8);
  return ~crc;
}
