// The CPU weight of an attempt relative to the owner: almost none; normal while it saves;
// more while it dies. Set in its cgroup; or without one by the nice value of its autogroups; or
// where those have no effect by the kernel's idle class. Used by the shepherd and, if that does
// not answer, by client and monitor. After open() nothing allocates, logs or waits for a lock;
// compiled into the shepherd without the C++ library. Not thread-safe.
#ifndef SUBLET_ATTEMPT_CPU_WEIGHT_H_
#define SUBLET_ATTEMPT_CPU_WEIGHT_H_

#include "attempt/processes.h"

namespace sublet {

// Whether the nice value of an autogroup (one for each session) has an effect on the calling
// process and its children: not if they are in a cpu cgroup other than the root's, as systemd
// makes for services and for people's programs, or if the administrator has switched autogroups
// off. The arguments are the places of proc and of cgroup v2.
bool autogroups_count(const char* proc = "/proc", const char* unified = "/sys/fs/cgroup") noexcept;

// Descriptors of a cgroup's files; -1: there is none.
struct WeightFiles {
  int idle = -1;    // cpu.idle
  int weight = -1;  // cpu.weight of cgroup v2
  int shares = -1;  // or cpu.shares
};

class CpuWeight {
 public:
  CpuWeight() = default;
  ~CpuWeight();
  CpuWeight(const CpuWeight&) = delete;
  CpuWeight& operator=(const CpuWeight&) = delete;

  // `cgroup_cpu`: the attempt's own folder with cpu.idle, or "": none. False with errno if
  // that cannot be written.
  bool open(const char* cgroup_cpu) noexcept;
  // The same with descriptors that the caller closes later. False: cpu.idle is missing.
  bool use(const WeightFiles& files) noexcept;
  bool by_cgroup() const noexcept { return idle_ >= 0; }
  // Each session has a weight of its own, and the kernel may refuse to change it for now.
  bool by_sessions() const noexcept { return autogroups_; }

  // False if the kernel refused it for now for some process: without root it allows one
  // change of an autogroup per 100 ms. Without root nobody leaves the idle class again: who saves
  // does so with what the owner's programs leave over.
  bool lift(AttemptProcesses& processes) noexcept;
  bool demote(AttemptProcesses& processes) noexcept;
  // More than that, for what takes a moment: a handler that is asked to save, or, when all are
  // frozen and about to be killed, the kernel, which takes their memory back. Beside two busy
  // programs of the owner's on each core they are gone in a third of the time that lift() gives
  // them. Without a cgroup like lift().
  bool hasten(AttemptProcesses& processes) noexcept;
  // Of the calling process, which has joined the cgroup. False with errno.
  bool demote_self() const noexcept;

 private:
  void set_weight(const char* weight) const noexcept;

  bool autogroups_ = false;
  bool owns_ = false;  // the descriptors
  int idle_ = -1;      // cpu.idle
  int weight_ = -1;    // cpu.weight of cgroup v2, or cpu.shares; -1: none
  const char* heavy_ = "";
  const char* normal_ = "";
};

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_CPU_WEIGHT_H_
