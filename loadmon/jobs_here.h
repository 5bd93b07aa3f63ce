// What a sense may ask about the jobs on this machine. The functions are the monitor's; they are
// called on its thread.
#ifndef SUBLET_LOADMON_JOBS_HERE_H_
#define SUBLET_LOADMON_JOBS_HERE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace sublet::loadmon {

// What a job uses; -1: not known.
struct JobUse {
  int64_t cpu_ms = -1;  // since it started
  int64_t memory = -1;  // bytes
  int64_t processes = -1;
  int64_t network = -1;  // bytes sent and received since it started
};

struct JobsHere {
  // Processes known to belong to jobs, and the shepherds of these.
  std::function<std::vector<pid_t>()> processes;
  // The connected shepherds and clients.
  std::function<std::vector<pid_t>()> daemons;
  // Job and attempt of those that run.
  std::function<std::vector<std::pair<uint64_t, uint32_t>>()> attempts;
  // Of one of those.
  std::function<JobUse(uint64_t job, uint32_t attempt)> use = {};
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_JOBS_HERE_H_
