// x86-64 with AVX-512: sixteen keys per word, and a rotate instruction. Compiled with
// -mavx512f.
#include <immintrin.h>

#include "examples/code-breaking/key_scan_lanes.h"

namespace sublet::code_breaking {
namespace {

struct Avx512 {
  using Word = uint32_t __attribute__((vector_size(64)));
  static constexpr unsigned kLanes = 16;
  [[gnu::always_inline]] static Word rotate(Word x, Word n) {
    constexpr __mmask16 kEveryLane = 0xffff;  // without a mask g++ 12 warns (its bug 105593)
    return (Word)_mm512_maskz_rolv_epi32(kEveryLane, (__m512i)x, (__m512i)n);
  }
};

}  // namespace

bool scan_avx512(const KnownBlock& block, unsigned length, uint64_t first, uint64_t last,
                 uint64_t* match) {
  return scan_lanes<Avx512>(block, length, first, last, match);
}

}  // namespace sublet::code_breaking
