// The matcher: which waiting job gets which idle machine. It owns the waiting jobs in their
// groups (matching/job_queue.h) and the machines in their classes, with the queue IDLE
// (matching/machine_queue.h), and keeps the two acquainted. It decides; whoever calls it
// carries the decision out.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_MATCHER_H_
#define SUBLET_SCHEDULING_MATCHING_MATCHER_H_

#include <functional>
#include <vector>

#include "scheduling/matching/job_queue.h"
#include "scheduling/matching/machine_queue.h"
#include "scheduling/policies/job_policy.h"

namespace sublet::scheduling {

class Matcher {
 public:
  explicit Matcher(const Policies& policies) : queue_(policies) {}

  JobQueue& queue() { return queue_; }
  const JobQueue& queue() const { return queue_; }
  MachineQueue& idle() { return idle_; }
  const MachineQueue& idle() const { return idle_; }

  // The class of a machine with this record, made if necessary.
  MachineClass* class_of(const MachineRecord& record) { return idle_.class_of(record, queue_); }
  // The group of a job with these needs, made if necessary; the job is counted in it until
  // leave_group.
  Group* enter_group(const Requirements& needs);
  void leave_group(Group* group);
  // Forgets groups without jobs: after the allocation, which may still look at them.
  void forget_spare_groups();

  // Gives idle machines to waiting jobs until no waiting job fits an idle machine. `place`
  // puts the job on the machine: it takes the job out of the queue, and the machine out of
  // IDLE if that is full.
  using Place = std::function<void(Job&, Machine&)>;
  void allocate(const Place& place);
  // No waiting job fits an idle machine, as the caller knows: none need be looked at.
  void note_allocated() { idle_.changed().clear(); }

 private:
  std::vector<MachineClass*> kinds_for_newly_queued();
  Machine* next_to_serve(uint64_t after, const std::vector<MachineClass*>& kinds);

  JobQueue queue_;
  MachineQueue idle_;
  std::vector<Group*> spare_groups_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_MATCHER_H_
