#include "server/spool/disk_guard.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "server/refusal.h"

namespace sublet::server {

DiskGuard::DiskGuard(const std::string& folder, uint64_t reserve_bytes)
    : folder_(folder), path_(folder + "/reserve"), bytes_(reserve_bytes) {
  restore_reserve();
}

void DiskGuard::give_up_reserve(const std::string& why) {
  unlink(path_.c_str());
  if (!held_.exchange(false)) return;  // already logged
  log(Severity::error) << why << "; new submissions are refused until there is room in " << folder_;
}

void DiskGuard::restore_reserve() {
  if (held_) return;
  UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  // Twice the reserve must be free: once for itself, once to continue with.
  if (!fd.valid() || system_files().free_bytes(folder_) < 2 * bytes_ ||
      posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes_)) != 0) {
    unlink(path_.c_str());
    return;
  }
  held_ = true;
  log(Severity::info) << format_bytes(bytes_) << " are kept in reserve in " << folder_;
}

void DiskGuard::check() const {
  if (held_) return;
  throw Refusal(Refusal::Kind::kUnavailable, "server.disk", "the server's disk is full",
                "Try again when the administrator has made room; running jobs continue.", folder_);
}

}  // namespace sublet::server
