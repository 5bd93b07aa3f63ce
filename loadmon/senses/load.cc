#include "loadmon/senses/load.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sublet::loadmon {
namespace {

// The start of a /proc file that is kept open.
std::string read_start(int fd) {
  char text[1024];
  const ssize_t got = pread(fd, text, sizeof text, 0);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

UniqueFd open_proc(const char* path) { return UniqueFd(open(path, O_RDONLY | O_CLOEXEC)); }

}  // namespace

bool parse_load(const std::string& proc_loadavg, std::array<double, 3>* load) {
  std::array<double, 3> read = {};
  if (sscanf(proc_loadavg.c_str(), "%lf %lf %lf", &read[0], &read[1], &read[2]) != 3) return false;
  if (!std::all_of(read.begin(), read.end(), [](double value) { return value >= 0; })) return false;
  *load = read;
  return true;
}

LoadSense::LoadSense() : loadavg_(open_proc("/proc/loadavg")) {}

bool LoadSense::sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) {
  if (last_ != 0) correction_.add(static_cast<double>(now - last_) * 1e-9, jobs.runnable);
  last_ = now;
  std::array<double, 3> load;
  if (!parse_load(read_start(loadavg_.get()), &load)) return false;
  for (size_t i = 0; i < load.size(); ++i) sample->load[i] = correction_.owners(load[i], i);
  return true;
}

}  // namespace sublet::loadmon
