// A scanner for any kind of machine word. A Machine has
//   Word          an unsigned 32-bit integer or a vector of them, one key per lane
//   kLanes        the number of lanes
//   rotate(x, n)  rotates each lane of x left by the five low bits of n's lane
// Several words are mixed side by side, because the steps for one word depend on each
// other. The keys of such a group differ only in their last byte.
//
// Included by one file per kind of processor, compiled for it. Its Machine must be in an
// anonymous namespace, and no inline function may be shared with other files: the linker
// keeps only one copy, perhaps one that this machine cannot run.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_KEY_SCAN_LANES_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_KEY_SCAN_LANES_H_

#include <stdint.h>
#include <string.h>

#include "examples/code-breaking/key_scan.h"

namespace sublet::code_breaking {

template <class Machine, unsigned kKeyWords>
class LaneScanner {
 public:
  static ScanFunction scan;

 private:
  using Word = typename Machine::Word;
  static constexpr unsigned kWays = 2;
  static constexpr unsigned kGroup = Machine::kLanes * kWays;
  static_assert(256 % kGroup == 0 && sizeof(Word) == 4 * Machine::kLanes);

  [[gnu::always_inline]] static void mix(Word& subkey, Word& key, Word& a, Word& b) {
    const Word sum = subkey + a + b;
    a = subkey = sum << 3 | sum >> 29;
    b = key = Machine::rotate(key + a + b, a + b);
  }

  // The key schedule makes three passes over the subkeys. The third yields them in the
  // order in which the rounds use them, so it is merged with the encryption.
  [[gnu::always_inline]] static void encrypt(Word (&key)[kWays][kKeyWords], const Block& plain,
                                             Word (&x)[kWays], Word (&y)[kWays]) {
    Word subkeys[kSubkeys][kWays];
    Word a[kWays] = {};
    Word b[kWays] = {};
#pragma GCC unroll 26
    for (unsigned i = 0; i < kSubkeys; ++i) {
#pragma GCC unroll 2
      for (unsigned way = 0; way < kWays; ++way) {
        subkeys[i][way] = Word{} + (kFirstSubkey + i * kSubkeyStep);
        mix(subkeys[i][way], key[way][i % kKeyWords], a[way], b[way]);
      }
    }
#pragma GCC unroll 26
    for (unsigned i = 0; i < kSubkeys; ++i) {
#pragma GCC unroll 2
      for (unsigned way = 0; way < kWays; ++way) {
        mix(subkeys[i][way], key[way][i % kKeyWords], a[way], b[way]);
      }
    }
#pragma GCC unroll 26
    for (unsigned i = 0; i < kSubkeys; ++i) {
#pragma GCC unroll 2
      for (unsigned way = 0; way < kWays; ++way) {
        mix(subkeys[i][way], key[way][i % kKeyWords], a[way], b[way]);
        if (i == 0) {
          x[way] = plain.a + a[way];
        } else if (i == 1) {
          y[way] = plain.b + a[way];
        } else if (i % 2 == 0) {
          x[way] = Machine::rotate(x[way] ^ y[way], y[way]) + a[way];
        } else {
          y[way] = Machine::rotate(y[way] ^ x[way], x[way]) + a[way];
        }
      }
    }
  }
};

template <class Machine, unsigned kKeyWords>
bool LaneScanner<Machine, kKeyWords>::scan(const KnownBlock& block, unsigned length, uint64_t first,
                                           uint64_t last, uint64_t* match) {
  uint32_t numbers[kGroup];
  for (unsigned i = 0; i < kGroup; ++i) numbers[i] = i << (8 * ((length - 1) % 4));
  Word last_byte[kWays];
  memcpy(last_byte, numbers, sizeof numbers);

  for (uint64_t group = first - first % kGroup;; group += kGroup) {
    const uint64_t bytes = group << (64 - 8 * length);  // the key's first byte is the top one
    const uint32_t words[2] = {__builtin_bswap32(static_cast<uint32_t>(bytes >> 32)),
                               __builtin_bswap32(static_cast<uint32_t>(bytes))};
    Word key[kWays][kKeyWords];
    for (unsigned way = 0; way < kWays; ++way) {
      for (unsigned i = 0; i < kKeyWords; ++i) key[way][i] = Word{} + words[i];
      key[way][kKeyWords - 1] += last_byte[way];
    }
    Word x[kWays];
    Word y[kWays];
    encrypt(key, block.plain, x, y);

    Word differences[kWays];
    for (unsigned way = 0; way < kWays; ++way) {
      differences[way] = (x[way] ^ block.cipher.a) | (y[way] ^ block.cipher.b);
    }
    uint32_t difference[kGroup];
    memcpy(difference, differences, sizeof differences);
    bool any = false;
    for (unsigned i = 0; i < kGroup; ++i) any |= difference[i] == 0;
    for (unsigned i = 0; any && i < kGroup; ++i) {
      if (difference[i] == 0 && group + i >= first && group + i <= last) {
        *match = group + i;
        return true;
      }
    }
    if (last - group < kGroup) return false;
  }
}

template <class Machine>
bool scan_lanes(const KnownBlock& block, unsigned length, uint64_t first, uint64_t last,
                uint64_t* match) {
  return length <= 4 ? LaneScanner<Machine, 1>::scan(block, length, first, last, match)
                     : LaneScanner<Machine, 2>::scan(block, length, first, last, match);
}

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_KEY_SCAN_LANES_H_
