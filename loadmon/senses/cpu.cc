#include "loadmon/senses/cpu.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "base/unique_fd.h"
#include "loadmon/cgroups.h"

namespace sublet::loadmon {
namespace {
constexpr int64_t kWindow = 450'000'000;
constexpr const char* kUnit = "/sublet-client.service";
// Of the folders that the client makes for attempts (attempt/cgroup.h).
constexpr const char* kJobsGroup = "sublet-";

// The start of a file of the kernel; "" if it cannot be read.
std::string read_start(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[4096];
  const ssize_t got = fd.valid() ? read(fd.get(), text, sizeof text) : -1;
  return got > 0 ? std::string(text, static_cast<size_t>(got)) : std::string();
}

// cgroup v2. The root's own cpu.stat is sampled at ticks; those of its children are exact.
class UnitClock : public CpuClock {
 public:
  // nullptr: this process is in no unit of Sublet's.
  static std::unique_ptr<CpuClock> open(const std::string& root) {
    const std::string groups = root + "/sys/fs/cgroup";
    const std::string own = read_start(root + "/proc/self/cgroup");
    const std::string path = own.substr(0, own.find('\n'));
    if (!path.starts_with("0::/") || !path.ends_with(kUnit)) return nullptr;
    const std::string unit = groups + path.substr(strlen("0::"));
    if (cgroup_usage_us(unit) < 0) return nullptr;
    return std::unique_ptr<CpuClock>(new UnitClock(groups, unit));
  }

  bool counts_jobs() const override { return false; }
  std::optional<double> read() override {
    const std::unique_ptr<DIR, int (*)(DIR*)> names(opendir(groups_.c_str()), closedir);
    const int64_t ours = cgroup_usage_us(unit_);
    if (!names || ours < 0) return std::nullopt;
    std::map<std::string, int64_t> now;
    while (const dirent* entry = readdir(names.get())) {
      const std::string name = entry->d_name;
      if (entry->d_type != DT_DIR || name.starts_with(".") || name.starts_with(kJobsGroup))
        continue;
      const int64_t usage = cgroup_usage_us(groups_ + "/" + name);
      if (usage >= 0) now[name] = usage;
    }
    // A group that is gone took its usage along: what it used since the last reading is not known.
    for (const auto& [name, usage] : now) {
      const auto before = last_.find(name);
      total_us_ += before == last_.end() ? usage : std::max<int64_t>(0, usage - before->second);
    }
    total_us_ -= std::max<int64_t>(0, ours - ours_);
    ours_ = ours;
    last_.swap(now);
    return static_cast<double>(total_us_) * 1e-6;
  }

 private:
  UnitClock(std::string groups, std::string unit)
      : groups_(std::move(groups)), unit_(std::move(unit)) {}

  const std::string groups_, unit_;
  std::map<std::string, int64_t> last_;  // group -> usage
  int64_t ours_ = 0;
  int64_t total_us_ = 0;
};

// cgroup v1.
class AccountingClock : public CpuClock {
 public:
  // nullptr: the controller is not there.
  static std::unique_ptr<CpuClock> open(const std::string& root) {
    for (const char* folder : {"cpuacct", "cpu,cpuacct"}) {
      const std::string path = root + "/sys/fs/cgroup/" + folder + "/cpuacct.usage";
      UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (fd.valid()) return std::unique_ptr<CpuClock>(new AccountingClock(std::move(fd)));
    }
    return nullptr;
  }

  bool counts_jobs() const override { return true; }
  std::optional<double> read() override {
    char text[64] = "";
    if (pread(usage_.get(), text, sizeof text - 1, 0) <= 0) return std::nullopt;
    char* end;
    const unsigned long long ns = strtoull(text, &end, 10);
    if (end == text) return std::nullopt;
    return static_cast<double>(ns) * 1e-9;
  }

 private:
  explicit AccountingClock(UniqueFd usage) : usage_(std::move(usage)) {}
  UniqueFd usage_;
};

// Time that has passed on all processors less the time in which they were idle, or not ours (a
// hypervisor's), or handled interrupts.
class IdleClock : public CpuClock {
 public:
  explicit IdleClock(const std::string& root) : path_(root + "/proc/stat") {}

  bool counts_jobs() const override { return true; }
  std::string remark() const override {
    return "the processors' idle time is read, because there is no cgroup cpuacct and the client "
           "is in no unit of its own";
  }
  std::optional<double> read() override {
    const std::string text = read_start(path_);
    unsigned long long t[8];
    if (sscanf(text.c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2],
               &t[3], &t[4], &t[5], &t[6], &t[7]) != 8)
      return std::nullopt;
    const double others = static_cast<double>(t[3] + t[4] + t[5] + t[6] + t[7]) /
                          static_cast<double>(sysconf(_SC_CLK_TCK));
    const double now = running_s();
    // One after the other: the number of processors may change.
    if (last_ > 0)
      used_ +=
          (now - last_) * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)) - (others - others_);
    last_ = now;
    others_ = others;
    return used_;
  }

 private:
  // Not counted while the machine sleeps, just as idle time is not.
  static double running_s() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  const std::string path_;
  double last_ = 0;  // of running_s()
  double others_ = 0;
  double used_ = 0;
};
}  // namespace

std::unique_ptr<CpuClock> open_cpu_clock(const std::string& root) {
  std::unique_ptr<CpuClock> clock = UnitClock::open(root);
  if (!clock) clock = AccountingClock::open(root);
  if (!clock) clock = std::make_unique<IdleClock>(root);
  return clock;
}

bool CpuSense::sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) {
  const std::optional<double> used = clock_->read();
  if (!used) return false;
  if (clock_->counts_jobs()) jobs_s_ += jobs.cpu_seconds;
  readings_.push_back({now, *used - jobs_s_});
  while (readings_.size() > 1 && now - readings_[1].at >= kWindow) readings_.pop_front();
  const Reading& first = readings_.front();
  if (now - first.at >= kWindow) {
    const double seconds = static_cast<double>(now - first.at) * 1e-9;
    cores_ = std::max(0.0, readings_.back().owners_s - first.owners_s) / seconds;
  }
  sample->cpu = cores_;
  return true;
}

}  // namespace sublet::loadmon
