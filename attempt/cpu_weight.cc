#include "attempt/cpu_weight.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace sublet {
namespace {

constexpr int kNormalNice = 0;
constexpr int kLowestNice = 19;
// Ten times the normal weight. Not more: a job that has much memory to give back should leave
// the owner something of every core.
constexpr char kHeavyWeight[] = "1000";
constexpr char kHeavyShares[] = "10240";
constexpr char kNormalWeight[] = "100";
constexpr char kNormalShares[] = "1024";

}  // namespace

CpuWeight::~CpuWeight() {
  if (idle_ >= 0) close(idle_);
  if (weight_ >= 0) close(weight_);
}

bool CpuWeight::open(const char* cgroup_cpu) noexcept {
  if (!*cgroup_cpu) return true;
  int folder = ::open(cgroup_cpu, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  idle_ = openat(folder, "cpu.idle", O_WRONLY | O_CLOEXEC);
  int error = errno;
  heavy_ = kHeavyWeight;
  normal_ = kNormalWeight;
  weight_ = openat(folder, "cpu.weight", O_WRONLY | O_CLOEXEC);
  if (weight_ < 0) {
    heavy_ = kHeavyShares;
    normal_ = kNormalShares;
    weight_ = openat(folder, "cpu.shares", O_WRONLY | O_CLOEXEC);
  }
  close(folder);
  errno = error;
  return idle_ >= 0;
}

// pwrite: a child that joins may use the same descriptor at this moment. A folder that was
// removed contains nobody.
bool CpuWeight::lift(AttemptProcesses& processes) noexcept {
  if (idle_ < 0) return processes.set_autogroup_nice(kNormalNice);
  const bool lifted = pwrite(idle_, "0", 1, 0) == 1 || errno == ENODEV;
  set_weight(normal_);
  return lifted;
}

// In this order: the kernel refuses it in the idle class. Another weight will do, too.
void CpuWeight::set_weight(const char* weight) const noexcept {
  if (weight_ >= 0 && pwrite(weight_, weight, strlen(weight), 0) < 0) errno = 0;
}

bool CpuWeight::demote(AttemptProcesses& processes) noexcept {
  if (idle_ < 0) return processes.set_autogroup_nice(kLowestNice);
  return pwrite(idle_, "1", 1, 0) == 1 || errno == ENODEV;
}

bool CpuWeight::hasten(AttemptProcesses& processes) noexcept {
  const bool lifted = lift(processes);
  set_weight(heavy_);
  return lifted;
}

bool CpuWeight::demote_self() const noexcept {
  if (idle_ >= 0) return pwrite(idle_, "1", 1, 0) == 1;
  int fd = ::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return true;  // a kernel without autogroups
  bool good = write(fd, "19", 2) == 2;
  int error = errno;
  close(fd);
  errno = error;
  return good;
}

}  // namespace sublet
