// Keys of one length, 1 to 8 bytes, as numbers in the order of their hexadecimal digits:
// the key's first byte is the most significant. Ranges include both ends.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_KEY_RANGE_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_KEY_RANGE_H_

#include <cstdint>

#include "examples/code-breaking/hex.h"

namespace sublet::code_breaking {

constexpr unsigned kMaxKeyBytes = 8;

std::uint64_t key_number(const Bytes& key);
Bytes key_bytes(std::uint64_t number, unsigned length);

struct KeyRange {
  std::uint64_t first;
  std::uint64_t last;  // not before first
  unsigned length;     // bytes of a key

  // 0 means 2^64, all keys of 8 bytes.
  std::uint64_t count() const { return last - first + 1; }

  // Part `index` of `of`: together the parts contain every key once, in order, and their
  // sizes differ by at most one. Throws std::invalid_argument if there is no such part, or
  // if there are more parts than keys.
  KeyRange part(std::uint64_t index, std::uint64_t of) const;
};

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_KEY_RANGE_H_
