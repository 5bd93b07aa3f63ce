// How much disk a folder takes. A job may have filled it with anything: no
// symbolic link is followed, and the search is bounded. Any thread.
#ifndef SUBLET_CLIENT_MACHINE_DISK_USAGE_H_
#define SUBLET_CLIENT_MACHINE_DISK_USAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace sublet::client {

inline constexpr size_t kMostEntriesLooked = 100'000;
inline constexpr int kDeepestLooked = 64;

// Bytes of the blocks that its files and folders take; what was not looked at,
// beyond `most` entries or kDeepestLooked folders deep, is left out, and so is
// what cannot be read. Not there: 0.
uint64_t disk_usage(const std::string& folder, size_t most = kMostEntriesLooked);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_DISK_USAGE_H_
