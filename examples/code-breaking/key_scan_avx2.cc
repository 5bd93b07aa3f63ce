// x86-64 with AVX2: eight keys per word. Compiled with -mavx2.
#include "examples/code-breaking/key_scan_lanes.h"

namespace sublet::code_breaking {
namespace {

struct Avx2 {
  using Word = uint32_t __attribute__((vector_size(32)));
  static constexpr unsigned kLanes = 8;
  [[gnu::always_inline]] static Word rotate(Word x, Word n) {
    return x << (n & 31) | x >> (-n & 31);
  }
};

}  // namespace

bool scan_avx2(const KnownBlock& block, unsigned length, uint64_t first, uint64_t last,
               uint64_t* match) {
  return scan_lanes<Avx2>(block, length, first, last, match);
}

}  // namespace sublet::code_breaking
