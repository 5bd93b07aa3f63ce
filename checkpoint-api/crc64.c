#include "checkpoint-api/crc64.h"

#include <pthread.h>

#include "checkpoint-api/little_endian.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define SUBLET_CRC64_FOLDS 1
#include <immintrin.h>
#endif

/* Numbers are reflected: bit 63 is the coefficient of x^0. */
static const uint64_t polynomial = 0xc96c5795d7870f42u;

/* table[k][b]: the effect of byte b followed by k more bytes, so that eight bytes are
 * processed per step. */
static uint64_t table[8][256];

static uint64_t times_x(uint64_t value) { return (value >> 1) ^ ((value & 1) ? polynomial : 0); }

static void make_table(void) {
  for (unsigned b = 0; b < 256; ++b) {
    uint64_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    table[0][b] = crc;
  }
  for (unsigned k = 1; k < 8; ++k) {
    for (unsigned b = 0; b < 256; ++b) {
      const uint64_t before = table[k - 1][b];
      table[k][b] = table[0][before & 0xff] ^ (before >> 8);
    }
  }
}

/* The register, not the checksum: without the two inversions. */
static uint64_t by_table(uint64_t crc, const unsigned char* at, size_t size) {
  for (; size >= 8; at += 8, size -= 8) {
    const uint64_t x = crc ^ sublet_load_u64(at);
    crc = table[7][x & 0xff] ^ table[6][(x >> 8) & 0xff] ^ table[5][(x >> 16) & 0xff] ^
          table[4][(x >> 24) & 0xff] ^ table[3][(x >> 32) & 0xff] ^ table[2][(x >> 40) & 0xff] ^
          table[1][(x >> 48) & 0xff] ^ table[0][x >> 56];
  }
  for (; size > 0; ++at, --size) crc = table[0][(crc ^ *at) & 0xff] ^ (crc >> 8);
  return crc;
}

#ifdef SUBLET_CRC64_FOLDS

/* Folding by carry-less multiplication (Gopal et al., "Fast CRC Computation for Generic
 * Polynomials Using PCLMULQDQ Instruction", Intel 2009): 16 bytes are replaced by a multiple of
 * themselves, modulo the polynomial, that lies `distance` bits further on. It takes about a
 * fifth of the time of the table, which was most of a large save. */
enum { kLanes = 4, kLaneBytes = 16, kStride = kLanes * kLaneBytes };

static int folds;
static uint64_t far_factors[2], near_factors[2]; /* for the first and the second eight bytes */

static uint64_t power_of_x(unsigned exponent) {
  uint64_t value = UINT64_C(1) << 63;
  while (exponent-- > 0) value = times_x(value);
  return value;
}

/* The product of two reflected numbers has one factor x too many, hence the 1. */
static void make_factors(uint64_t factors[2], unsigned distance) {
  factors[0] = power_of_x(distance + 64 - 1);
  factors[1] = power_of_x(distance - 1);
}

static void prepare_folds(void) {
  __builtin_cpu_init();
  folds = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse2");
  make_factors(far_factors, 8 * kStride);
  make_factors(near_factors, 8 * kLaneBytes);
}

__attribute__((target("pclmul,sse2"))) static __m128i fold(__m128i lane, __m128i factors,
                                                           __m128i next) {
  const __m128i first = _mm_clmulepi64_si128(lane, factors, 0x00);
  const __m128i second = _mm_clmulepi64_si128(lane, factors, 0x11);
  return _mm_xor_si128(next, _mm_xor_si128(first, second));
}

static __m128i load(const unsigned char* at) { return _mm_loadu_si128((const __m128i*)at); }

/* At least kStride bytes. */
__attribute__((target("pclmul,sse2"))) static uint64_t by_folding(uint64_t crc,
                                                                  const unsigned char* at,
                                                                  size_t size) {
  __m128i factors = load((const unsigned char*)far_factors);
  __m128i lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = load(at + (size_t)i * kLaneBytes);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi64_si128((long long)crc));
  for (at += kStride, size -= kStride; size >= kStride; at += kStride, size -= kStride) {
    for (int i = 0; i < kLanes; ++i) {
      lanes[i] = fold(lanes[i], factors, load(at + (size_t)i * kLaneBytes));
    }
  }
  factors = load((const unsigned char*)near_factors);
  for (int i = 1; i < kLanes; ++i) lanes[i] = fold(lanes[i - 1], factors, lanes[i]);
  unsigned char last[kLaneBytes];
  _mm_storeu_si128((__m128i*)last, lanes[kLanes - 1]);
  return by_table(by_table(0, last, sizeof last), at, size);
}

#endif /* SUBLET_CRC64_FOLDS */

static void prepare(void) {
  make_table();
#ifdef SUBLET_CRC64_FOLDS
  prepare_folds();
#endif
}

uint64_t sublet_crc64(uint64_t crc, const void* bytes, size_t size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, prepare);
#ifdef SUBLET_CRC64_FOLDS
  if (folds && size >= kStride) return ~by_folding(~crc, bytes, size);
#endif
  return ~by_table(~crc, bytes, size);
}
