#include "loadmon/senses/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

namespace sublet::loadmon {
namespace {
constexpr int64_t kShortestWindow = 200'000'000;
// Checking a hundred terminals costs more than all other senses together.
constexpr int64_t kTerminalsEvery = 2'000'000'000;

// The start of a /proc file that is kept open.
std::string read_start(int fd) {
  char text[1024];
  const ssize_t got = pread(fd, text, sizeof text, 0);
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

UniqueFd open_proc(const char* path) { return UniqueFd(open(path, O_RDONLY | O_CLOEXEC)); }

bool digits_only(const char* text) { return *text != 0 && text[strspn(text, "0123456789")] == 0; }

// The latest access time, in seconds, of the terminals in `folder` whose names are `prefix`
// followed by digits (not /dev/tty itself); 0 if there are none.
int64_t youngest_access(const char* folder, const char* prefix) {
  const std::unique_ptr<DIR, int (*)(DIR*)> names(opendir(folder), closedir);
  if (!names) return 0;
  int64_t youngest = 0;
  while (const dirent* entry = readdir(names.get())) {
    if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0) continue;
    if (!digits_only(entry->d_name + strlen(prefix))) continue;
    struct stat about;
    if (fstatat(dirfd(names.get()), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISCHR(about.st_mode)) youngest = std::max<int64_t>(youngest, about.st_atim.tv_sec);
  }
  return youngest;
}
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

bool InputSense::sample(int64_t now, const JobsEffect& /*jobs*/, protocol::PresenceSample* sample) {
  if (last_ == 0 || now - last_ >= kTerminalsEvery) {
    youngest_ = std::max(youngest_access("/dev", "tty"), youngest_access("/dev/pts", ""));
    last_ = now;
  }
  if (youngest_ == 0) return true;
  timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  // A time in the future (the clock was set back) counts as input just now.
  sample->input_age_ms = std::max<int64_t>(0, wall.tv_sec - youngest_) * 1000;
  return true;
}

}  // namespace sublet::loadmon
