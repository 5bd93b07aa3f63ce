// The CPU weight of a job against the owner, and the cgroup folders of one attempt.
// A tenant weighs nothing (cpu.idle of its cgroup, or without one nice 19 of its
// autogroup) except while it saves for the owner. After make() nothing here
// allocates or waits.
#ifndef SUBLET_CLIENT_SHEPHERD_WEIGHT_H_
#define SUBLET_CLIENT_SHEPHERD_WEIGHT_H_

#include "attempt/format.h"
#include "attempt/processes.h"

namespace sublet::shepherd {

class Weight {
 public:
  // Makes the folders of the order. Null, or the step that failed (errno says why).
  const char* make(const sublet_order& order);
  // As fork(), the child in the unified hierarchy's folder from its birth where the
  // kernel allows it. Moving a process there, or a whole one within the old
  // hierarchies, halts every fork and exit of the machine until all cores have
  // passed through the scheduler: 6 ms at the median, 14 at times (measured).
  pid_t fork();
  // In the child, before it gives up its rights: joins the folders it is not in,
  // and weighs nothing from here on. Null or the step that failed.
  const char* join() const;

  // Normal weight. `processes` are those of the attempt.
  void lift(AttemptProcesses& processes);
  // To be called again and again. Without a cgroup the weight sits on sessions, of
  // which a job may open new ones, and the kernel may refuse a change for 100 ms.
  // With one a child that was just joining may have undone lift().
  void refresh(AttemptProcesses& processes);
  // True while refresh() has not yet had its way.
  bool pending() const { return pending_; }

  // True when the kernel killed a process for want of memory in the folder.
  bool memory_ran_out() const;
  void remove();

 private:
  static constexpr int kFolders = 3;
  const char* folders_[kFolders] = {};    // unified, memory, cpu; null: none, or named before
  int members_[kFolders] = {-1, -1, -1};  // what is written to join; -1: nothing to join
  int birthplace_ = -1;                   // the unified folder
  int idle_ = -1;
  bool lifted_ = false;
  const char* memory_ = nullptr;
  int nice_ = 19;
  bool pending_ = false;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WEIGHT_H_
