// Recovers keys that it knows, with every scanner that this machine can run, and prints
// how fast each is. False, with a sentence on stderr, when one of them fails.
#ifndef SUBLET_EXAMPLES_CODE_BREAKING_SELF_TEST_H_
#define SUBLET_EXAMPLES_CODE_BREAKING_SELF_TEST_H_

#include <cstdint>

namespace sublet::code_breaking {

// `packet`: keys from one of the measured points to the next.
bool self_test(std::uint64_t packet);

}  // namespace sublet::code_breaking

#endif  // SUBLET_EXAMPLES_CODE_BREAKING_SELF_TEST_H_
