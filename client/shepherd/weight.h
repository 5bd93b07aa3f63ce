// The CPU weight of a job relative to the owner, and the cgroup folders of an attempt.
// A tenant has almost no weight (attempt/cpu_weight.h) except while it saves after the owner's
// return. After make() nothing here allocates or waits.
#ifndef SUBLET_CLIENT_SHEPHERD_WEIGHT_H_
#define SUBLET_CLIENT_SHEPHERD_WEIGHT_H_

#include "attempt/cpu_weight.h"
#include "attempt/format.h"
#include "attempt/processes.h"

namespace sublet::shepherd {

class Weight {
 public:
  // Creates the folders of the order. Null, or the step that failed, with errno.
  const char* make(const sublet_order& order);
  // Like fork(), but creates the child in the unified hierarchy's folder if the kernel
  // supports it. Moving a process there, or a whole process within the v1 hierarchies,
  // stalls every fork and exit on the machine until all cores have passed through the
  // scheduler (measured: median 6 ms, at times 14 ms).
  pid_t fork() { return create(0); }
  // The same, but the child is a sibling, as by fork_sibling() of system.h.
  pid_t fork_sibling();
  // In the child, before it drops privileges: joins the remaining folders and sets the
  // lowest weight. Null, or the step that failed.
  const char* join() const;

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

  void remove();

 private:
  pid_t create(uint64_t flags);

  static constexpr int kFolders = 4;
  const char* folders_[kFolders] =
      {};  // unified, memory, processes, cpu; null: none, or a duplicate
  int members_[kFolders] = {-1, -1, -1, -1};  // files to write to for joining; -1: none
  int birthplace_ = -1;                       // the unified folder
  CpuWeight cpu_;
  bool lifted_ = false;
  bool pending_ = false;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WEIGHT_H_
