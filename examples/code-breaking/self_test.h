// Recovers a known key with every scanner that this machine can run, and prints the speed
// of each. False, with a message on stderr, if one fails.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_SELF_TEST_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_SELF_TEST_H_

#include <cstdint>

namespace sublet::code_breaking {

// `packet`: keys per time measurement.
bool self_test(std::uint64_t packet);

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_SELF_TEST_H_
