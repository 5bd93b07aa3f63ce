#include "client/machine/memory_pressure.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"

namespace sublet::client {
namespace {

namespace fs = std::filesystem;

// For how long some program has waited, µs; -1: the file does not say.
int64_t waited_us(const std::string& file) {
  char text[256];
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t count = fd.valid() ? read(fd.get(), text, sizeof text - 1) : -1;
  long long total = -1;
  if (count <= 0) return -1;
  text[count] = 0;
  return sscanf(text, "some avg10=%*s avg60=%*s avg300=%*s total=%lld", &total) == 1 ? total : -1;
}

// Only the root of the hierarchy has no type: elsewhere the owner's programs are not beside jobs.
bool is_root(const std::string& folder) {
  std::error_code error;
  return !folder.empty() && !fs::exists(folder + "/cgroup.type", error);
}

}  // namespace

MemoryPressure::MemoryPressure(const std::string& jobs_in, const std::string& machine)
    : beside_(is_root(jobs_in) ? jobs_in : ""), machine_(machine) {}

std::vector<std::string> MemoryPressure::others() const {
  constexpr std::string_view kJobs = "sublet-";
  std::vector<std::string> found;
  std::error_code error;
  if (beside_.empty()) return found;
  for (fs::directory_iterator at(beside_, error), end; !error && at != end; at.increment(error))
    if (at->is_directory(error) && !at->path().filename().string().starts_with(kJobs))
      found.push_back(at->path().string() + "/memory.pressure");
  return found;
}

Pressure MemoryPressure::look(int64_t now_ns) {
  std::vector<std::string> files = others();
  Pressure pressure;
  pressure.of_jobs_too = files.empty();
  if (files.empty()) files.push_back(machine_);
  const int64_t elapsed_us = (now_ns - std::exchange(last_ns_, now_ns)) / 1000;
  const auto before = std::exchange(last_us_, {});
  for (const std::string& file : files) {
    const int64_t total = waited_us(file);
    if (total < 0) continue;
    last_us_[file] = total;
    const auto last = before.find(file);
    if (last == before.end() || elapsed_us <= 0) continue;
    const int64_t ppm = (total - last->second) * 1'000'000 / elapsed_us;
    pressure.ppm =
        std::max(pressure.ppm, static_cast<uint32_t>(std::clamp<int64_t>(ppm, 0, 1'000'000)));
  }
  return pressure;
}

}  // namespace sublet::client
