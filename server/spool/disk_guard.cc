#include "server/spool/disk_guard.h"

#include "base/log.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "server/refusal.h"

namespace sublet::server {

DiskGuard::DiskGuard(const std::string& folder, uint64_t reserve_bytes, Files& files)
    : folder_(folder), path_(folder + "/reserve"), bytes_(reserve_bytes), files_(files) {
  restore_reserve();
}

void DiskGuard::erase() {
  try {
    files_.remove_file(path_);
  } catch (const FileError& error) {
    log(Severity::error) << error.what();
  }
}

void DiskGuard::give_up_reserve(const std::string& why) {
  erase();
  if (!held_.exchange(false)) return;  // already logged
  log(Severity::error) << why << "; new submissions are refused until there is room in " << folder_;
}

void DiskGuard::restore_reserve() {
  if (held_) return;
  try {
    files_.remove_file(path_);
    // Twice the reserve must be free: once for itself, once to continue with.
    if (files_.free_bytes(folder_) < 2 * bytes_) return;
    const UniqueFd fd = files_.create(path_);
    files_.reserve(fd.get(), path_, bytes_);
  } catch (const FileError&) {
    return erase();
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
