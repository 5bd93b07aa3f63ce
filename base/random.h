// Randomness from the kernel, for secrets and ids. Any thread.
#ifndef SUBLET_BASE_RANDOM_H_
#define SUBLET_BASE_RANDOM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sublet {

// Throws OsError if the kernel provides none.
std::string random_bytes(size_t count);
using RequestId = std::array<uint8_t, 16>;  // identifies a call that may be repeated
RequestId random_id();

}  // namespace sublet

#endif  // SUBLET_BASE_RANDOM_H_
