#include "loadmon/jobs_meter.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "loadmon/process_tree.h"

namespace sublet::loadmon {
namespace {
// Of a larger tree the rest is not examined and counts as the owner's, which errs on the
// owner's side.
constexpr size_t kMostProcesses = 16384;

// Processes that are examined without a break: these take half a millisecond.
constexpr size_t kInARow = 16;

bool running(char state) { return state == 'R' || state == 'D'; }
}  // namespace

bool parse_process_stat(const std::string& line, ProcessTimes* times) {
  // The name, in parentheses, may contain anything, including parentheses and spaces.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return false;
  long pid, parent;
  unsigned long long user, system, start;
  long long children_user, children_system;
  char state;
  if (sscanf(line.c_str(), "%ld", &pid) != 1) return false;
  const int fields =
      sscanf(line.c_str() + name_end + 1,
             " %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld %*d "
             "%*d %*d %*d %llu",
             &state, &parent, &user, &system, &children_user, &children_system, &start);
  if (fields != 7 || children_user < 0 || children_system < 0) return false;
  times->pid = static_cast<pid_t>(pid);
  times->parent = static_cast<pid_t>(parent);
  times->state = state;
  times->start = start;
  times->own = user + system;
  times->children = static_cast<uint64_t>(children_user + children_system);
  return true;
}

bool TreeCpu::has_surviving_parent(const ProcessTimes& gone,
                                   const std::unordered_map<pid_t, Known>& now) const {
  pid_t pid = gone.parent;
  for (size_t steps = 0; steps <= known_.size(); ++steps) {
    if (now.contains(pid)) return true;
    const auto before = known_.find(pid);
    if (before == known_.end()) return false;
    pid = before->second.times.parent;
  }
  return false;
}

double TreeCpu::update(const std::vector<ProcessTimes>& processes, double seconds, uint64_t then) {
  std::unordered_map<pid_t, Known> now;
  now.reserve(processes.size());
  double used = 0;
  // Newly reaped CPU time. The time of processes that are gone must be subtracted as far
  // as it was counted before. One sum for all survivors, since an orphan is not reaped by
  // its last known parent.
  double reaped = 0;
  for (const ProcessTimes& process : processes) {
    double own = static_cast<double>(process.own);
    double children = static_cast<double>(process.children);
    const auto before = known_.find(process.pid);
    if (before != known_.end() && before->second.times.start == process.start) {
      own -= static_cast<double>(before->second.times.own);
      children -= static_cast<double>(before->second.times.children);
    } else if (process.start < then) {
      own = children = 0;
    }
    used += own + children;
    reaped += children;
    now[process.pid] = {process, seconds > 0 ? own / seconds : 0};
  }
  for (const auto& [pid, before] : known_) {
    const auto alive = now.find(pid);
    if (alive != now.end() && alive->second.times.start == before.times.start) continue;
    const double counted = static_cast<double>(before.times.own + before.times.children);
    if (has_surviving_parent(before.times, now) && reaped >= counted) {
      reaped -= counted;
      used -= counted;
    } else {
      used += before.rate * seconds;
    }
  }
  known_.swap(now);
  return std::max(0.0, used);
}

JobsEffect JobsMeter::update(const std::vector<pid_t>& roots, int64_t now) {
  // The kernel's list of children can miss some while others end, so processes known from
  // the last update are examined again.
  std::vector<pid_t> open = roots;
  for (const auto& [pid, start] : members_) open.push_back(pid);
  std::unordered_map<pid_t, uint64_t> seen;
  std::vector<ProcessTimes> found;
  JobsEffect effect;
  for (size_t i = 0; i < open.size() && found.size() < kMostProcesses; ++i) {
    if (seen.count(open[i])) continue;
    if (found.size() % kInARow == kInARow - 1) look_up_();
    ProcessTimes times;
    if (!parse_process_stat(read_proc("/proc/" + std::to_string(open[i]) + "/stat"), &times))
      continue;
    const auto before = members_.find(times.pid);
    const bool another = before != members_.end() && before->second != times.start;
    if (another && i >= roots.size()) continue;  // its pid has been reused
    seen[times.pid] = times.start;
    found.push_back(times);
    if (times.pid == getpid()) continue;
    if (running(times.state)) effect.runnable += 1;
    append_children(times.pid, &open);
  }
  const double seconds = last_ > 0 ? static_cast<double>(now - last_) * 1e-9 : 0;
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto then =
      static_cast<uint64_t>(static_cast<double>(last_ > 0 ? last_ : now) * 1e-9 / tick);
  effect.cpu_seconds = cpu_.update(found, seconds, then) * tick;
  // A process may have several running threads, which its CPU use reveals.
  if (seconds > 0) effect.runnable = std::max(effect.runnable, effect.cpu_seconds / seconds);
  members_.swap(seen);
  last_ = now;
  return effect;
}

}  // namespace sublet::loadmon
