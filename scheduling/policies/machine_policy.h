// Which machine: the interface of the policies that choose, for a job whose turn it is, among the
// idle machines that fit it (matching/machine_choice.h). Each is one file in machines/, registered
// in one line of machine_policies.cc.
//
// A policy has no state of its own: what it knows of a job or a machine is in their records or in
// Anchored, so that a restored brain goes on exactly like one that was never stopped.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINE_POLICY_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINE_POLICY_H_

#include <tuple>

#include "scheduling/sentence.h"
#include "scheduling/types.h"

namespace sublet::scheduling {

struct Job;
struct Machine;

// How well a machine suits a job: larger is better. Neither number is NaN.
struct MachineScore {
  double value = 0;
  double tie = 0;  // decides if the values are equal
};
inline bool operator<(const MachineScore& a, const MachineScore& b) {
  return std::tie(a.value, a.tie) < std::tie(b.value, b.tie);
}

class MachinePolicy {
 public:
  virtual ~MachinePolicy() = default;

  // Whether the machine nearest to the head of IDLE is taken, whatever others there are.
  virtual bool takes_first() const { return false; }
  // Of equal machines the one nearest to the head of IDLE is taken. Not asked if takes_first.
  virtual MachineScore score(const Job& job, const Machine& machine, Micros now) const {
    (void)job;
    (void)machine;
    (void)now;
    return {};
  }
  // Why this machine, after its name: " idle for 12 s", ", drawn at random". Asked before the job
  // has reserved anything there; put into words as JobPolicy::standing.
  virtual Sentence reason(const Job& job, const Machine& machine, Micros now) const = 0;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINE_POLICY_H_
