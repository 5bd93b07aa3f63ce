#include "examples/code-breaking/key_range.h"

#include <stdexcept>
#include <string>

namespace sublet::code_breaking {

std::uint64_t key_number(const Bytes& key) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : key) number = number << 8 | byte;
  return number;
}

Bytes key_bytes(std::uint64_t number, unsigned length) {
  Bytes key(length);
  for (unsigned i = 0; i < length; ++i) {
    key[i] = static_cast<std::uint8_t>(number >> (8 * (length - 1 - i)));
  }
  return key;
}

KeyRange KeyRange::part(std::uint64_t index, std::uint64_t of) const {
  if (index >= of) {
    throw std::invalid_argument("no part " + std::to_string(index) + " of " + std::to_string(of) +
                                "; the first is 0");
  }
  if (of - 1 > last - first) {
    throw std::invalid_argument(std::to_string(of) + " parts of " + std::to_string(count()) +
                                " keys: some would be empty");
  }
  __extension__ using Wide = unsigned __int128;
  const Wide keys = static_cast<Wide>(last - first) + 1;
  const auto begin = static_cast<std::uint64_t>(keys * index / of);
  const auto end = static_cast<std::uint64_t>(keys * (index + 1) / of - 1);
  return {first + begin, first + end, length};
}

}  // namespace sublet::code_breaking
