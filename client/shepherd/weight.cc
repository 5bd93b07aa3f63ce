#include "client/shepherd/weight.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "client/shepherd/system.h"

namespace sublet::shepherd {
const char* Weight::make(const sublet_order& order) {
  // The folder with the weight comes last, and join() sets the weight after joining all:
  // a process with almost no weight should not hold the kernel's lock for all cgroups.
  constexpr int kUnified = 0;
  const char* named[kFolders] = {order.cgroup_unified, order.cgroup_memory, order.cgroup_processes,
                                 order.cgroup_cpu};
  for (int i = 0; i < kFolders; ++i) {
    bool again = false;
    for (int j = 0; j < i; ++j) again |= strcmp(named[i], named[j]) == 0;
    if (!*named[i] || again) continue;
    // One left by an attempt of this name that was never started can be used.
    if (mkdir(named[i], 0755) != 0 && errno != EEXIST) return "cgroup";
    folders_[i] = named[i];
    // Moving the only thread of a process ("tasks") avoids the stall described at fork().
    members_[i] = open_kernel_file(named[i], i == kUnified ? "cgroup.procs" : "tasks", O_WRONLY);
    if (members_[i] < 0 && errno == ENOENT)  // it is in the unified hierarchy, too
      members_[i] = open_kernel_file(named[i], "cgroup.procs", O_WRONLY);
    if (members_[i] < 0) return "cgroup";
    if (i == kUnified) birthplace_ = open(named[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
  }
  if (!cpu_.open(order.cgroup_cpu)) return "cgroup weight";
  // The kernel may refuse the child's change of its autogroup (one per 100 ms is
  // allowed), and the child does not wait.
  pending_ = cpu_.by_sessions();
  return nullptr;
}

pid_t Weight::fork_sibling() { return create(CLONE_PARENT); }

pid_t Weight::create(uint64_t flags) {
  const auto elsewhere = [=] { return flags == 0 ? ::fork() : shepherd::fork_sibling(); };
  if (birthplace_ < 0) return elsewhere();
  struct clone_args how = {};
  how.flags = CLONE_INTO_CGROUP | flags;
  how.exit_signal = flags == 0 ? SIGCHLD : 0;  // else that of this process
  how.cgroup = static_cast<uint64_t>(birthplace_);
  const int joins_later = members_[0];
  members_[0] = -1;
  const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &how, sizeof how));
  if (pid >= 0) return pid;
  // An old kernel, or a container that forbids the call.
  members_[0] = joins_later;
  return elsewhere();
}

const char* Weight::join() const {
  for (int members : members_)
    if (members >= 0 && write(members, "0", 1) != 1) return "cgroup";
  // By sessions not fatal if refused for now: refresh() retries.
  if (!cpu_.demote_self() && !cpu_.by_sessions()) return "cgroup weight";
  return nullptr;
}

bool Weight::lift(AttemptProcesses& processes) {
  lifted_ = true;
  refresh(processes);
  const bool lifted = !pending_;
  if (cpu_.by_cgroup()) pending_ = true;  // repeat once, see refresh()
  return lifted;
}

bool Weight::hasten(AttemptProcesses& processes) {
  lifted_ = true;
  pending_ = !cpu_.hasten(processes);
  return !pending_;
}

void Weight::demote(AttemptProcesses& processes) {
  lifted_ = false;
  pending_ = !cpu_.demote(processes);
}

void Weight::refresh(AttemptProcesses& processes) {
  if (lifted_)
    pending_ = !cpu_.lift(processes);
  else if (!cpu_.by_cgroup())
    pending_ = !cpu_.demote(processes);
  else
    pending_ = false;
}

void Weight::remove() {
  for (const char* folder : folders_) {
    if (!folder) continue;
    // A process that was just reaped may still be leaving the cgroup.
    for (int i = 0; i < 100 && rmdir(folder) != 0 && errno == EBUSY; ++i) {
      struct timespec pause = {0, 1000000};
      nanosleep(&pause, nullptr);
    }
  }
}

}  // namespace sublet::shepherd
