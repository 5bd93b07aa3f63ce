// Keeps a reserve file next to the database. When a commit fails, the file is deleted
// to free disk space, so that running jobs can still end, and new submissions are
// refused until there is enough space to create it again.
//
// Threads: any.
#ifndef SUBLET_SERVER_SPOOL_DISK_GUARD_H_
#define SUBLET_SERVER_SPOOL_DISK_GUARD_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "base/files.h"

namespace sublet::server {

class DiskGuard {
 public:
  // Creates the reserve of this many bytes; without enough space, check() throws.
  DiskGuard(const std::string& folder, uint64_t reserve_bytes, Files& files = system_files());

  // Must be called when a commit failed, with the reason.
  void give_up_reserve(const std::string& why);
  // Creates the reserve again if there is enough space; must be called periodically.
  void restore_reserve();
  // Throws Refusal kUnavailable "server.disk" while there is no reserve.
  void check() const;

 private:
  void erase();

  const std::string folder_;
  const std::string path_;
  const uint64_t bytes_;
  Files& files_;
  std::atomic<bool> held_{false};
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_DISK_GUARD_H_
