// Measures the CPU use of the jobs and Sublet's own daemons, so that it is not taken for
// the owner's. That of a job is what the kernel accounts for in its cgroup, if there is one that
// does. All else is found in the process trees below the client and the shepherds: processes
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
  // What it reaps is counted in a cgroup, as long as that is there.
  bool children_apart = false;
};

// False if `line` is not the content of a /proc/PID/stat.
bool parse_process_stat(const std::string& line, ProcessTimes* times);

// The accounting, without access to /proc.
class TreeCpu {
 public:
  // Returns the CPU time, in the unit of `own`, that the processes used since the last call, which
  // was `seconds` ago, at `then` (as `start`). A process seen for the first time counts
  // fully if it has started since then, else not at all. A process that is gone and was
  // reaped by no survivor is assumed to have continued at its previous rate.
  double update(const std::vector<ProcessTimes>& now, double seconds, uint64_t then);

  // From the next update on, `group` stands for all processes below its parent, which are forgotten
  // and returned: a cgroup that contains them. Its time so far does not count.
  std::vector<pid_t> hand_over(const ProcessTimes& group);
  // It has moved to such a cgroup.
  void forget(pid_t pid) { known_.erase(pid); }

 private:
  struct Known {
    ProcessTimes times;
    double rate = 0;  // ticks per second, since the update before
  };
  // Whether one of its ancestors is still in the tree.
  bool is_below(const ProcessTimes& one, pid_t ancestor) const;
  bool has_surviving_parent(const ProcessTimes& gone,
                            const std::unordered_map<pid_t, Known>& now) const;

  std::unordered_map<pid_t, Known> known_;
};

struct JobToMeter {
  std::vector<pid_t> roots;  // its shepherd, then its program
  std::string cgroup;        // contains its processes, without the shepherd; "": none
  std::string cpu_cgroup;    // likewise, and accounts for their CPU time; "": none
  // Which of that is of the slot's earlier attempts, which had the same cgroup. Of two such
  // attempts the later one comes later.
  int64_t cpu_before_us = 0;
};

class JobsMeter {
 public:
  // `look_up` is called again and again while processes are examined: hundreds take many
  // milliseconds, and the owner must not wait for that.
  explicit JobsMeter(std::function<void()> look_up) : look_up_(std::move(look_up)) {}

  // `daemons`: the client, the shepherds and the monitor itself. `counts_runnable`: whether the
  // number of runnable processes matters, which takes a look at each; else it is derived from the
  // CPU time where a cgroup has that. `now`: ns.
  JobsEffect update(const std::vector<pid_t>& daemons, const std::vector<JobToMeter>& jobs,
                    bool counts_runnable, int64_t now);
  // How many processes the last update looked at.
  size_t examined() const { return examined_; }

 private:
  // A job's cgroup. It stands for its processes from the second reading on: those were counted
  // one by one until the first.
  struct Group {
    pid_t id = 0;           // in the tree: negative, and never used again
    int64_t before_us = 0;  // as in JobToMeter
    int64_t usage_us = 0;   // since then
    bool counts = false;
  };

  // Brings groups_ up to date, and appends those that count.
  void read_groups(const std::vector<JobToMeter>& jobs, std::vector<ProcessTimes>* found);
  void walk(const std::vector<pid_t>& daemons, const std::vector<JobToMeter>& jobs,
            std::vector<ProcessTimes>* found, JobsEffect* effect);
  bool is_counted_by_group(const JobToMeter& job) const;

  double count_running(const std::string& cgroup);

  const std::function<void()> look_up_;
  TreeCpu cpu_;
  std::unordered_map<std::string, Group> groups_;  // by folder
  pid_t last_id_ = 0;
  size_t examined_ = 0;
  int64_t last_ = 0;
  std::unordered_map<pid_t, uint64_t> members_;  // pid -> start time, at the last update
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_JOBS_METER_H_
