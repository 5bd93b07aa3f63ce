// Any processor: one key per word.
#include "examples/code-breaking/key_scan_lanes.h"

namespace sublet::code_breaking {
namespace {

struct Plain {
  using Word = uint32_t;
  static constexpr unsigned kLanes = 1;
  [[gnu::always_inline]] static Word rotate(Word x, Word n) {
    return x << (n & 31) | x >> (-n & 31);
  }
};

}  // namespace

bool scan_plain(const KnownBlock& block, unsigned length, uint64_t first, uint64_t last,
                uint64_t* match) {
  return scan_lanes<Plain>(block, length, first, last, match);
}

}  // namespace sublet::code_breaking
