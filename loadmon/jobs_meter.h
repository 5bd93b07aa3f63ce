// How much CPU the jobs and Sublet's own daemons use, so that it is not taken
// for the owner's. Looks at process trees, from the client and the shepherds
// down. Processes that come and go between two looks are found again in the
// time of the children that their parents have reaped. One thread.
#ifndef SUBLET_LOADMON_JOBS_METER_H_
#define SUBLET_LOADMON_JOBS_METER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "loadmon/source.h"

namespace sublet::loadmon {

// One line of /proc/PID/stat, times in clock ticks.
struct ProcessTimes {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  uint64_t start = 0;     // with the pid, names one process
  uint64_t own = 0;       // CPU of the process, all threads
  uint64_t children = 0;  // CPU of those that it has reaped
};

// False when `line` is not the content of a /proc/PID/stat.
bool parse_process_stat(const std::string& line, ProcessTimes* times);

// The accounting alone, without /proc.
class TreeCpu {
 public:
  // The CPU in ticks that the processes used since the last call, which was
  // `seconds` ago, at `then` (ticks after boot). Of a process seen for the first
  // time everything counts if it has started since, else nothing. A process that
  // is gone without a survivor having reaped it is taken to have gone on as before.
  double update(const std::vector<ProcessTimes>& now, double seconds, uint64_t then);

 private:
  struct Known {
    ProcessTimes times;
    double rate = 0;  // ticks a second, over the last window
  };
  // Whether it, or who was above it, lives on in the tree.
  bool has_surviving_parent(const ProcessTimes& gone,
                            const std::unordered_map<pid_t, Known>& now) const;

  std::unordered_map<pid_t, Known> known_;
};

class JobsMeter {
 public:
  // `roots`: the client, the shepherds and the monitor itself. `now`: ns.
  JobsEffect update(const std::vector<pid_t>& roots, int64_t now);

 private:
  void scan(pid_t pid, std::vector<ProcessTimes>* found);
  void look_below(pid_t pid, std::vector<pid_t>* children) const;

  TreeCpu cpu_;
  int64_t last_ = 0;
  std::unordered_map<pid_t, uint64_t> members_;  // pid -> start time, of the last look
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_JOBS_METER_H_
