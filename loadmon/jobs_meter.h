// Measures the CPU use of the jobs and Sublet's own daemons, so that it is not taken for
// the owner's. Examines the process trees below the client and the shepherds. Processes
// that start and end between two updates are included in the time of their parents'
// reaped children. One thread.
#ifndef SUBLET_LOADMON_JOBS_METER_H_
#define SUBLET_LOADMON_JOBS_METER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "loadmon/senses/sense.h"

namespace sublet::loadmon {

// One line of /proc/PID/stat, times in clock ticks.
struct ProcessTimes {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  uint64_t start = 0;     // identifies the process, together with the pid
  uint64_t own = 0;       // CPU time of the process, all threads
  uint64_t children = 0;  // CPU time of the children that it has reaped
};

// False if `line` is not the content of a /proc/PID/stat.
bool parse_process_stat(const std::string& line, ProcessTimes* times);

// The accounting, without access to /proc.
class TreeCpu {
 public:
  // Returns the CPU time, in ticks, that the processes used since the last call, which was
  // `seconds` ago, at `then` (ticks after boot). A process seen for the first time counts
  // fully if it has started since then, else not at all. A process that is gone and was
  // reaped by no survivor is assumed to have continued at its previous rate.
  double update(const std::vector<ProcessTimes>& now, double seconds, uint64_t then);

 private:
  struct Known {
    ProcessTimes times;
    double rate = 0;  // ticks per second, since the update before
  };
  // Whether one of its ancestors is still in the tree.
  bool has_surviving_parent(const ProcessTimes& gone,
                            const std::unordered_map<pid_t, Known>& now) const;

  std::unordered_map<pid_t, Known> known_;
};

class JobsMeter {
 public:
  // `look_up` is called again and again while processes are examined: hundreds take many
  // milliseconds, and the owner must not wait for that.
  explicit JobsMeter(std::function<void()> look_up) : look_up_(std::move(look_up)) {}

  // `roots`: the client, the shepherds and the monitor itself. `now`: ns.
  JobsEffect update(const std::vector<pid_t>& roots, int64_t now);

 private:
  const std::function<void()> look_up_;
  TreeCpu cpu_;
  int64_t last_ = 0;
  std::unordered_map<pid_t, uint64_t> members_;  // pid -> start time, at the last update
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_JOBS_METER_H_
