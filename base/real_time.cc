#include "base/real_time.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

namespace sublet {
namespace {

constexpr rlim_t kMost_us = 200'000;

pid_t real_time_thread;
int nice_afterwards;

// Of the thread that is meant, on whichever the signal arrives.
void become_normal(int) {
  const struct sched_param none = {};
  sched_setscheduler(real_time_thread, SCHED_OTHER, &none);
  setpriority(PRIO_PROCESS, static_cast<id_t>(real_time_thread), nice_afterwards);
}

}  // namespace

bool become_real_time(int nice) {
  real_time_thread = gettid();
  nice_afterwards = nice;
  struct sigaction action = {};
  action.sa_handler = become_normal;
  action.sa_flags = SA_RESTART;
  struct rlimit bound;
  if (getrlimit(RLIMIT_RTTIME, &bound) != 0) return false;
  // The hard limit is left: without privileges it could not be raised for a child again.
  bound.rlim_cur = kMost_us;
  if (sigaction(SIGXCPU, &action, nullptr) != 0 || setrlimit(RLIMIT_RTTIME, &bound) != 0)
    return false;
  struct sched_param lowest = {};
  lowest.sched_priority = sched_get_priority_min(SCHED_RR);
  return sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0;
}

void lift_real_time_bound() {
  struct rlimit bound;
  if (getrlimit(RLIMIT_RTTIME, &bound) != 0) return;
  bound.rlim_cur = bound.rlim_max;
  setrlimit(RLIMIT_RTTIME, &bound);
}

}  // namespace sublet
