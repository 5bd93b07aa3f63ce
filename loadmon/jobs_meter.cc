#include "loadmon/jobs_meter.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <unordered_set>

#include "loadmon/cgroups.h"
#include "loadmon/process_tree.h"

namespace sublet::loadmon {
namespace {
// Of a larger tree the rest is not examined and counts as the owner's, which errs on the
// owner's side.
constexpr size_t kMostProcesses = 16384;

// Processes that are examined without a break: these take half a millisecond.
constexpr size_t kInARow = 16;

bool running(char state) { return state == 'R' || state == 'D'; }

double ticks_per_s() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

// Times in microseconds, but for `start`.
bool read_times(pid_t pid, ProcessTimes* times) {
  if (!parse_process_stat(read_proc("/proc/" + std::to_string(pid) + "/stat"), times)) return false;
  const auto us_per_tick = static_cast<uint64_t>(1e6 / ticks_per_s());
  times->own *= us_per_tick;
  times->children *= us_per_tick;
  return true;
}

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
  for (ProcessTimes process : processes) {
    const auto before = known_.find(process.pid);
    // Until the cgroup is gone, after which the sum contains what that counted.
    if (process.children_apart && before != known_.end())
      process.children = before->second.times.children;
    double own = static_cast<double>(process.own);
    double children = static_cast<double>(process.children);
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
    const bool survives = has_surviving_parent(before.times, now);
    if (survives && (reaped >= counted || pid < 0)) {
      // Of a group, the part that its shepherd has reaped: the rest others have waited for.
      const double known = std::min(reaped, counted);
      reaped -= known;
      used -= known;
    } else {
      used += before.rate * seconds;
    }
  }
  known_.swap(now);
  return std::max(0.0, used);
}

bool TreeCpu::is_below(const ProcessTimes& one, pid_t ancestor) const {
  pid_t pid = one.parent;
  for (size_t steps = 0; steps <= known_.size() && pid != ancestor; ++steps) {
    const auto parent = known_.find(pid);
    if (parent == known_.end()) return false;
    pid = parent->second.times.parent;
  }
  return pid == ancestor;
}

std::vector<pid_t> TreeCpu::hand_over(const ProcessTimes& group) {
  std::vector<pid_t> below;
  for (const auto& [pid, known] : known_)
    if (pid > 0 && is_below(known.times, group.parent)) below.push_back(pid);
  for (const pid_t pid : below) known_.erase(pid);
  known_[group.pid] = {group, 0};
  return below;
}

bool JobsMeter::is_counted_by_group(const JobToMeter& job) const {
  const auto group = groups_.find(job.cpu_cgroup);
  return group != groups_.end() && group->second.counts;
}

void JobsMeter::read_groups(const std::vector<JobToMeter>& jobs, std::vector<ProcessTimes>* found) {
  std::unordered_map<std::string, Group> now;
  for (auto one = jobs.begin(); one != jobs.end(); ++one) {
    const JobToMeter& job = *one;
    const int64_t all = job.cpu_cgroup.empty() ? -1 : cgroup_usage_us(job.cpu_cgroup);
    const auto is_another = [&](const JobToMeter& later) {
      return later.cpu_cgroup != job.cpu_cgroup;
    };
    // It has ended if its cgroup is another's.
    if (all < 0 || !std::all_of(one + 1, jobs.end(), is_another)) continue;
    const int64_t usage = all - job.cpu_before_us;
    const auto before = groups_.find(job.cpu_cgroup);
    // Less than before: it was made anew.
    const bool known = before != groups_.end() && before->second.usage_us <= usage &&
                       before->second.before_us == job.cpu_before_us;
    Group& group = now[job.cpu_cgroup];
    group = {known ? before->second.id : --last_id_, job.cpu_before_us, usage, known};
    if (!known) continue;
    ProcessTimes times;
    times.pid = group.id;
    times.parent = job.roots.front();
    if (!before->second.counts) {
      times.own = static_cast<uint64_t>(before->second.usage_us);
      for (const pid_t pid : cpu_.hand_over(times)) members_.erase(pid);
    }
    times.own = static_cast<uint64_t>(usage);
    found->push_back(times);
  }
  groups_.swap(now);
}

void JobsMeter::walk(const std::vector<pid_t>& daemons, const std::vector<JobToMeter>& jobs,
                     std::vector<ProcessTimes>* found, JobsEffect* effect) {
  std::vector<pid_t> open = daemons;
  std::unordered_set<pid_t> with_group;  // shepherds whose children are counted there
  std::unordered_set<std::string> groups;
  for (const JobToMeter& job : jobs) {
    open.push_back(job.roots.front());
    if (is_counted_by_group(job)) {
      with_group.insert(job.roots.front());
      groups.insert(job.cpu_cgroup.substr(job.cpu_cgroup.rfind('/') + 1));
      continue;
    }
    open.insert(open.end(), job.roots.begin() + 1, job.roots.end());
    if (!job.cgroup.empty()) append_cgroup_members(job.cgroup, &open);
  }
  const size_t roots = open.size();
  // The kernel's list of children can miss some while others end, so processes known from
  // the last update are examined again.
  for (const auto& [pid, start] : members_) open.push_back(pid);
  std::unordered_map<pid_t, uint64_t> seen;
  for (size_t i = 0; i < open.size() && found->size() < kMostProcesses; ++i) {
    if (seen.count(open[i])) continue;
    if (i % kInARow == kInARow - 1) look_up_();
    const bool is_shepherd = with_group.contains(open[i]);
    if (i >= daemons.size() && !is_shepherd && is_in_cgroup(open[i], groups)) {
      cpu_.forget(open[i]);
      continue;
    }
    ProcessTimes times;
    if (!read_times(open[i], &times)) continue;
    const auto before = members_.find(times.pid);
    const bool another = before != members_.end() && before->second != times.start;
    if (another && i >= roots) continue;  // its pid has been reused
    seen[times.pid] = times.start;
    times.children_apart = is_shepherd;
    found->push_back(times);
    if (times.pid == getpid()) continue;
    if (running(times.state)) effect->runnable += 1;
    if (!times.children_apart) append_children(times.pid, &open);
  }
  members_.swap(seen);
}

double JobsMeter::count_running(const std::string& cgroup) {
  std::vector<pid_t> members;
  append_cgroup_members(cgroup, &members);
  double count = 0;
  for (const pid_t pid : members) {
    if (++examined_ % kInARow == 0) look_up_();
    ProcessTimes times;
    if (read_times(pid, &times) && running(times.state)) count += 1;
  }
  return count;
}

JobsEffect JobsMeter::update(const std::vector<pid_t>& daemons, const std::vector<JobToMeter>& jobs,
                             bool counts_runnable, int64_t now) {
  std::vector<ProcessTimes> found;
  JobsEffect effect;
  read_groups(jobs, &found);
  const size_t groups = found.size();
  walk(daemons, jobs, &found, &effect);
  examined_ = found.size() - groups;
  if (counts_runnable)
    for (const JobToMeter& job : jobs)
      if (is_counted_by_group(job)) effect.runnable += count_running(job.cpu_cgroup);
  const double seconds = last_ > 0 ? static_cast<double>(now - last_) * 1e-9 : 0;
  const auto then =
      static_cast<uint64_t>(static_cast<double>(last_ > 0 ? last_ : now) * 1e-9 * ticks_per_s());
  effect.cpu_seconds = cpu_.update(found, seconds, then) * 1e-6;
  // A process may have several running threads, which its CPU use reveals.
  if (seconds > 0) effect.runnable = std::max(effect.runnable, effect.cpu_seconds / seconds);
  last_ = now;
  return effect;
}

}  // namespace sublet::loadmon
