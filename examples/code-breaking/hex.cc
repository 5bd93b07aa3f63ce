#include "examples/code-breaking/hex.h"

#include <stdexcept>

namespace sublet::code_breaking {
namespace {

int digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

Bytes from_hex(std::string_view digits) {
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (digit_value(digits[i]) < 0) {
      throw std::invalid_argument("character " + std::to_string(i + 1) +
                                  " is not a hexadecimal digit");
    }
  }
  if (digits.size() % 2 != 0) {
    throw std::invalid_argument(std::to_string(digits.size()) +
                                " hexadecimal digits; two make a byte");
  }
  Bytes bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes.push_back(
        static_cast<std::uint8_t>(digit_value(digits[i]) << 4 | digit_value(digits[i + 1])));
  }
  return bytes;
}

std::string to_hex(const Bytes& bytes) {
  std::string digits;
  for (const std::uint8_t byte : bytes) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

}  // namespace sublet::code_breaking
