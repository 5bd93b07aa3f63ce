#include "attempt/cpu_weight.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
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

int read_text(const char* folder, const char* name, char* to, int size) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t count = read(fd, to, static_cast<size_t>(size - 1));
  close(fd);
  to[count > 0 ? count : 0] = 0;
  return static_cast<int>(count);
}

// Whether `word` is in a list whose items are separated by commas.
bool has_word(const char* list, const char* word) {
  const size_t length = strlen(word);
  for (const char* item = list; item; item = strchr(item, ',') ? strchr(item, ',') + 1 : nullptr)
    if (strncmp(item, word, length) == 0 && (item[length] == ',' || item[length] == 0)) return true;
  return false;
}

// Whether the cgroup or one above it, but the root's, has a weight. Shortens `path`.
bool has_weight(const char* unified, char* path) {
  char folder[4200];
  for (;;) {
    char* const last = strrchr(path, '/');
    if (last && last[1] == 0) *last = 0;  // the root of this namespace, or of all
    snprintf(folder, sizeof folder, "%s%s/cpu.weight", unified, path);
    if (access(folder, F_OK) == 0) return true;
    if (!last || last[1] == 0) return false;
    last[last == path ? 1 : 0] = 0;
  }
}

}  // namespace

// Each line of the file is "NUMBER:CONTROLLERS:PATH"; v2 has the number 0 and no controllers.
bool autogroups_count(const char* proc, const char* unified) noexcept {
  char text[4096], enabled[8];
  if (read_text(proc, "sys/kernel/sched_autogroup_enabled", enabled, sizeof enabled) <= 0 ||
      enabled[0] == '0')
    return false;
  if (read_text(proc, "self/cgroup", text, sizeof text) < 0) return false;
  char* rest = nullptr;
  char* in_unified = nullptr;
  for (char* line = strtok_r(text, "\n", &rest); line; line = strtok_r(nullptr, "\n", &rest)) {
    char* const controllers = strchr(line, ':');
    char* const path = controllers ? strchr(controllers + 1, ':') : nullptr;
    if (!path) continue;
    *path = 0;
    if (has_word(controllers + 1, "cpu")) return strcmp(path + 1, "/") == 0;
    if (controllers[1] == 0) in_unified = path + 1;
  }
  return !in_unified || !has_weight(unified, in_unified);
}

CpuWeight::~CpuWeight() {
  if (!owns_) return;
  if (idle_ >= 0) close(idle_);
  if (weight_ >= 0) close(weight_);
}

bool CpuWeight::open(const char* cgroup_cpu) noexcept {
  if (!*cgroup_cpu) {
    autogroups_ = autogroups_count();
    return true;
  }
  int folder = ::open(cgroup_cpu, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  WeightFiles files;
  files.idle = openat(folder, "cpu.idle", O_WRONLY | O_CLOEXEC);
  int error = errno;
  files.weight = openat(folder, "cpu.weight", O_WRONLY | O_CLOEXEC);
  if (files.weight < 0) files.shares = openat(folder, "cpu.shares", O_WRONLY | O_CLOEXEC);
  close(folder);
  owns_ = true;
  errno = error;
  return use(files);
}

bool CpuWeight::use(const WeightFiles& files) noexcept {
  const bool older = files.weight < 0;
  idle_ = files.idle;
  weight_ = older ? files.shares : files.weight;
  heavy_ = older ? kHeavyShares : kHeavyWeight;
  normal_ = older ? kNormalShares : kNormalWeight;
  return idle_ >= 0;
}

// pwrite: a child that joins may use the same descriptor at this moment. A folder that was
// removed contains nobody.
bool CpuWeight::lift(AttemptProcesses& processes) noexcept {
  if (autogroups_) return processes.set_autogroup_nice(kNormalNice);
  if (idle_ < 0) {
    if (geteuid() == 0) processes.set_class(SCHED_OTHER);
    return true;
  }
  const bool lifted = pwrite(idle_, "0", 1, 0) == 1 || errno == ENODEV;
  set_weight(normal_);
  return lifted;
}

// In this order: the kernel refuses it in the idle class. Another weight will do, too.
void CpuWeight::set_weight(const char* weight) const noexcept {
  if (weight_ >= 0 && pwrite(weight_, weight, strlen(weight), 0) < 0) errno = 0;
}

bool CpuWeight::demote(AttemptProcesses& processes) noexcept {
  if (autogroups_) return processes.set_autogroup_nice(kLowestNice);
  if (idle_ < 0) {
    processes.set_class(SCHED_IDLE);
    return true;
  }
  return pwrite(idle_, "1", 1, 0) == 1 || errno == ENODEV;
}

bool CpuWeight::hasten(AttemptProcesses& processes) noexcept {
  const bool lifted = lift(processes);
  set_weight(heavy_);
  return lifted;
}

bool CpuWeight::demote_self() const noexcept {
  if (idle_ >= 0) return pwrite(idle_, "1", 1, 0) == 1;
  if (!autogroups_) {
    constexpr sched_param kNone = {};
    return sched_setscheduler(0, SCHED_IDLE, &kNone) == 0;
  }
  int fd = ::open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool good = write(fd, "19", 2) == 2;
  int error = errno;
  close(fd);
  errno = error;
  return good;
}

}  // namespace sublet
