#include "client/shepherd/demoted.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attempt/disk_priority.h"
#include "client/shepherd/cgroups.h"
#include "client/shepherd/weight.h"

namespace sublet::shepherd {
namespace {

constexpr long kAgainNs = 100'000'000;

// Static, because zero pages take no memory until they are used.
sublet_order order;
AttemptProcesses processes;

// Its weight is like that of a job with this order. It ends with its keeper, or it would still
// write to files that others write to after it.
[[noreturn]] void become(char* const* command, const Cgroups& cgroups, const Weight& weight,
                         pid_t keeper) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != keeper) _exit(1);
  set_disk_priority(0, DiskPriority::kIdle);
  // Without one of its own, its session's weight would be this process's, too.
  setsid();
  if (const char* failed = cgroups.join()) perror(failed);
  if (!weight.demote_self()) perror("cgroup weight");
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  char* const environment[] = {nullptr};
  execve(command[0], command, environment);
  perror(command[0]);
  _exit(1);
}

// Its exit status, or 1.
int wait_for(pid_t pid, const sigset_t& awaited, Weight& weight) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (ended < 0 && errno != EINTR) return 1;
    // The kernel may have refused the weight for now. Not before it has a session of its own.
    if (weight.pending() && getsid(pid) == pid) weight.refresh(processes);
    const timespec again = {0, kAgainNs};
    if (sigtimedwait(&awaited, nullptr, weight.pending() ? &again : nullptr) != SIGTERM) continue;
    weight.hasten(processes);
    kill(pid, SIGKILL);
  }
}

}  // namespace

int run_demoted(const char* cgroup_unified, const char* cgroup_cpu, char* const* command) {
  order.cgroup_memory = order.cgroup_processes = order.server = "";
  order.cgroup_unified = cgroup_unified;
  order.cgroup_cpu = cgroup_cpu;
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGTERM);
  sigaddset(&awaited, SIGCHLD);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  Cgroups cgroups(-1);
  Weight weight;
  const char* failed = cgroups.prepare(&order);
  if (!failed && !processes.open(order.cgroup_unified)) failed = "/proc";
  if (!failed) failed = weight.open(order, processes);
  if (failed) {
    perror(failed);
    cgroups.remove();
    return 1;
  }
  const pid_t keeper = getpid();
  const pid_t pid = cgroups.fork();
  if (pid == 0) become(command, cgroups, weight, keeper);
  processes.set({.session = pid});
  const int status = pid > 0 ? wait_for(pid, awaited, weight) : 1;
  cgroups.remove();
  return status;
}

}  // namespace sublet::shepherd
