#include "loadmon/senses/machine.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sublet::loadmon {
namespace {
constexpr int64_t kShortestWindow = 200'000'000;

// The start of a /proc file that is kept open.
std::string read_start(int fd) {
  char text[1024];
  const ssize_t got = pread(fd, text, sizeof text, 0);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

UniqueFd open_proc(const char* path) { return UniqueFd(open(path, O_RDONLY | O_CLOEXEC)); }

}  // namespace

bool parse_busy_ticks(const std::string& proc_stat, uint64_t* ticks) {
  unsigned long long user, nice, system;
  if (sscanf(proc_stat.c_str(), "cpu %llu %llu %llu", &user, &nice, &system) != 3) return false;
  *ticks = user + nice + system;
  return true;
}

bool parse_load(const std::string& proc_loadavg, std::array<double, 3>* load) {
  std::array<double, 3> read = {};
  if (sscanf(proc_loadavg.c_str(), "%lf %lf %lf", &read[0], &read[1], &read[2]) != 3) return false;
  if (!std::all_of(read.begin(), read.end(), [](double value) { return value >= 0; })) return false;
  *load = read;
  return true;
}

CpuSense::CpuSense() : stat_(open_proc("/proc/stat")) {}

bool CpuSense::sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) {
  jobs_seconds_ += jobs.cpu_seconds;
  if (last_ == 0 || now - last_ >= kShortestWindow) {
    uint64_t ticks;
    if (!parse_busy_ticks(read_start(stat_.get()), &ticks)) return false;
    if (last_ != 0) {
      const double seconds = static_cast<double>(now - last_) * 1e-9;
      const double busy = static_cast<double>(static_cast<int64_t>(ticks - last_ticks_)) /
                          static_cast<double>(sysconf(_SC_CLK_TCK));
      cores_ = std::max(0.0, busy - jobs_seconds_) / seconds;
    }
    last_ = now;
    last_ticks_ = ticks;
    jobs_seconds_ = 0;
  }
  sample->cpu = cores_;
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
