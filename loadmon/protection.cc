#include "loadmon/protection.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "base/start_up_memory.h"

namespace sublet::loadmon {
namespace {
constexpr int kNice = -5;
constexpr rlim_t kMostRealTime_us = 200'000;
// The kernel kills whoever goes on until then.
constexpr rlim_t kLastRealTime_us = 2'000'000;

pid_t real_time_thread;

// Of the thread that is meant, on whichever the signal arrives.
void become_normal(int) {
  const sched_param none = {};
  sched_setscheduler(real_time_thread, SCHED_OTHER, &none);
  setpriority(PRIO_PROCESS, static_cast<id_t>(real_time_thread), kNice);
}

bool become_real_time() {
  real_time_thread = gettid();
  struct sigaction action = {};
  action.sa_handler = become_normal;
  action.sa_flags = SA_RESTART;
  const rlimit bound = {kMostRealTime_us, kLastRealTime_us};
  if (sigaction(SIGXCPU, &action, nullptr) != 0 || setrlimit(RLIMIT_RTTIME, &bound) != 0)
    return false;
  sched_param lowest = {};
  lowest.sched_priority = sched_get_priority_min(SCHED_RR);
  // Threads that it starts are normal again.
  return sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0;
}
}  // namespace

void protect_process() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if (geteuid() == 0) std::ofstream("/proc/self/oom_score_adj") << "-500";
  if (!become_real_time() && setpriority(PRIO_PROCESS, 0, kNice) != 0)
    log(Severity::info) << "runs at normal priority: not permitted to raise it";
  release_start_up_memory();
  // Only pages that are used from now on, and its own code, used or not yet: all of its libraries
  // would be several times as much.
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
    log(Severity::info) << "its memory may be swapped out: " << std::strerror(errno);
  keep_own_code();
}

}  // namespace sublet::loadmon
