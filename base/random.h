// Randomness from the kernel, for secrets and ids. Any thread.
#ifndef SUBLET_BASE_RANDOM_H_
#define SUBLET_BASE_RANDOM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sublet {

// Throws OsError if the kernel has none to give.
std::string random_bytes(size_t count);
using RequestId = std::array<uint8_t, 16>;  // of a call that may be repeated
RequestId random_id();

}  // namespace sublet

#endif  // SUBLET_BASE_RANDOM_H_
