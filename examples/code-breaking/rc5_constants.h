// Shared by all implementations of RC5-32/12 here. No inline functions: some files that
// include this are compiled for processors that not every machine has.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_RC5_CONSTANTS_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_RC5_CONSTANTS_H_

#include <cstdint>

namespace sublet::code_breaking {

constexpr unsigned kRounds = 12;
constexpr unsigned kSubkeys = 2 * (kRounds + 1);
constexpr unsigned kBlockBytes = 8;
constexpr std::uint32_t kFirstSubkey = 0xb7e15163;  // from e - 2
constexpr std::uint32_t kSubkeyStep = 0x9e3779b9;   // from the golden ratio

struct Block {
  std::uint32_t a;
  std::uint32_t b;
};

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_RC5_CONSTANTS_H_
