// Bytes as hexadecimal digits, two per byte, first byte first.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_HEX_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_HEX_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sublet::code_breaking {

using Bytes = std::vector<std::uint8_t>;

// Throws std::invalid_argument, whose text is meant to follow a name and a colon.
Bytes from_hex(std::string_view digits);
std::string to_hex(const Bytes& bytes);

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_HEX_H_
