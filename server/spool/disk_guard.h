// Room on the server's disk. A reserve file is kept beside the database; when a
// commit fails it is given up, so that running jobs can still end, and new
// submissions are refused until there is room to make it again.
//
// Threads: any.
#ifndef SUBLET_SERVER_SPOOL_DISK_GUARD_H_
#define SUBLET_SERVER_SPOOL_DISK_GUARD_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace sublet::server {

class DiskGuard {
 public:
  // Makes the reserve of that many bytes; without room starts refusing.
  DiskGuard(const std::string& folder, uint64_t reserve_bytes);

  // A commit failed for this reason.
  void give_up_reserve(const std::string& why);
  // Makes the reserve again where there is room; from time to time.
  void restore_reserve();
  // Throws Refusal kUnavailable "server.disk" while the reserve is gone.
  void check() const;

 private:
  const std::string folder_;
  const std::string path_;
  const uint64_t bytes_;
  std::atomic<bool> held_{false};
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_DISK_GUARD_H_
