// The disk usage of a folder. A job may have filled it with anything: symbolic links
// are not followed, and the search is bounded. Any thread.
#ifndef SUBLET_CLIENT_MACHINE_DISK_USAGE_H_
#define SUBLET_CLIENT_MACHINE_DISK_USAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace sublet::client {

inline constexpr size_t kMostEntriesLooked = 100'000;
inline constexpr int kDeepestLooked = 64;

struct DiskUse {
  uint64_t bytes = 0;
  bool is_all = true;  // there are not more entries than were looked at
};

// Bytes allocated to its files and folders; of a file with several names a part for each. Entries
// beyond the first `most`, deeper than kDeepestLooked folders or unreadable are not counted. 0 if
// it does not exist.
DiskUse disk_use(const std::string& folder, size_t most);
uint64_t disk_usage(const std::string& folder, size_t most = kMostEntriesLooked);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_DISK_USAGE_H_
