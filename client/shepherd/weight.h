// The CPU weight of a job relative to the owner. A tenant has almost none (attempt/cpu_weight.h)
// except while it saves after the owner's return. Nothing here allocates or waits.
#ifndef SUBLET_CLIENT_SHEPHERD_WEIGHT_H_
#define SUBLET_CLIENT_SHEPHERD_WEIGHT_H_

#include "attempt/cpu_weight.h"
#include "attempt/format.h"
#include "attempt/processes.h"

namespace sublet::shepherd {

class Weight {
 public:
  // For the order's cgroup: normal weight. Without one the kernel may refuse a change for now.
  // `kept`: its files, which the caller closes later. Null, or the step that failed, with errno.
  const char* open(const sublet_order& order, AttemptProcesses& processes,
                   const WeightFiles* kept = nullptr);
  // In the child, which is in its cgroups: the lowest weight. False with errno.
  bool demote_self() const;

  // Sets normal weight, or for a moment more (CpuWeight::hasten), or almost none. `processes`
  // are those of the attempt. False if the kernel refuses it for now.
  bool lift(AttemptProcesses& processes);
  bool hasten(AttemptProcesses& processes);
  void demote(AttemptProcesses& processes);
  // To be called repeatedly. Without a cgroup the weight may be set per session, a job may
  // create new sessions, and the kernel may refuse a change for 100 ms. With a cgroup, a
  // child that was just joining may have undone lift().
  void refresh(AttemptProcesses& processes);
  bool by_cgroup() const { return cpu_.by_cgroup(); }
  // True until refresh() has succeeded.
  bool pending() const { return pending_; }

 private:
  CpuWeight cpu_;
  bool lifted_ = false;
  bool pending_ = false;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WEIGHT_H_
