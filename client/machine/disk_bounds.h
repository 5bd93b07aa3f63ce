// Whether attempts use more of the disk than they may: the bound in their order. A folder is
// measured again only when as much of the disk has been used, by whomever, as its attempt may yet
// use, or as half of its bound, or after a minute. One thread.
#ifndef SUBLET_CLIENT_MACHINE_DISK_BOUNDS_H_
#define SUBLET_CLIENT_MACHINE_DISK_BOUNDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "client/attempts/work.h"

namespace sublet::client {

class DiskBounds {
 public:
  DiskBounds(const Files& files, std::string state_folder)
      : files_(files), state_folder_(std::move(state_folder)) {}

  // Those of `here`, sorted, that are over their bound, with what they use and the bound. `free`:
  // bytes left on the disk; now_ns: CLOCK_BOOTTIME. May throw FileError.
  std::vector<std::pair<AttemptName, Shortage>> exceeded(const std::vector<AttemptName>& here,
                                                         uint64_t free, int64_t now_ns);
  // Bytes that each attempt used when it was last measured; those that were not are not in it.
  std::map<AttemptName, uint64_t> used() const;

 private:
  struct Attempt {
    uint64_t bound = 0;  // bytes; 0: it has none
    uint64_t used = 0;   // when it was last measured
    uint64_t free = 0;   // of the disk, then
    int64_t at_ns = 0;   // 0: not yet
  };
  bool has_bound(const std::string& folder, Attempt* attempt) const;

  const Files& files_;
  const std::string state_folder_;
  std::map<AttemptName, Attempt> attempts_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_DISK_BOUNDS_H_
