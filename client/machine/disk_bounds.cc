#include "client/machine/disk_bounds.h"

#include <sys/stat.h>

#include <algorithm>

#include "attempt/folder.h"
#include "client/attempts/assignment.h"
#include "client/machine/disk_usage.h"

namespace sublet::client {
namespace {

// Others may free what it uses.
constexpr int64_t kLongestNs = 60'000'000'000;

// Without the copy of its checkpoint files, which is ours.
uint64_t used_by_job(const std::string& folder) {
  struct stat copy = {};
  const bool is_there = lstat((folder + "/" + kPackedFile).c_str(), &copy) == 0;
  const uint64_t ours = is_there ? static_cast<uint64_t>(copy.st_blocks) * 512 : 0;
  const uint64_t all = disk_usage(folder);
  return all - std::min(all, ours);
}

}  // namespace

// From when its order is written, until it ends.
bool DiskBounds::has_bound(const std::string& folder, Attempt* attempt) const {
  if (files_.exists(folder + "/" SUBLET_EXIT_FILE)) return false;
  if (attempt->at_ns != 0) return attempt->bound != 0;
  std::string error;
  const auto order = read_order(files_, folder, &error);
  if (order) attempt->bound = static_cast<uint64_t>(order->limit_disk);
  return attempt->bound != 0;
}

std::vector<std::pair<AttemptName, Shortage>> DiskBounds::exceeded(
    const std::vector<AttemptName>& here, uint64_t free, int64_t now_ns) {
  std::erase_if(attempts_,
                [&](const auto& item) { return !std::ranges::binary_search(here, item.first); });
  std::vector<std::pair<AttemptName, Shortage>> found;
  for (const AttemptName& name : here) {
    Attempt& attempt = attempts_[name];
    const std::string folder = attempt_folder(state_folder_, name);
    if (!has_bound(folder, &attempt)) continue;
    const uint64_t grown = attempt.free > free ? attempt.free - free : 0;
    const bool may_be_over = attempt.used + grown > attempt.bound;
    // What it uses is told to the server, too.
    const bool may_differ = grown > attempt.bound / 2 || now_ns - attempt.at_ns >= kLongestNs;
    if (attempt.at_ns != 0 && !may_be_over && !may_differ) continue;
    attempt.used = used_by_job(folder);
    attempt.free = free;
    attempt.at_ns = now_ns;
    if (attempt.used > attempt.bound)
      found.emplace_back(name, Shortage{Shortage::Of::kDiskBound, attempt.used, attempt.bound});
  }
  return found;
}

std::map<AttemptName, uint64_t> DiskBounds::used() const {
  std::map<AttemptName, uint64_t> used;
  for (const auto& [name, attempt] : attempts_)
    if (attempt.at_ns != 0) used.emplace(name, attempt.used);
  return used;
}

}  // namespace sublet::client
