// The policies in force.
#ifndef SUBLET_SCHEDULING_POLICIES_POLICIES_H_
#define SUBLET_SCHEDULING_POLICIES_POLICIES_H_

#include <cstdint>
#include <memory>

#include "scheduling/policies/job_policy.h"
#include "scheduling/policies/machine_policy.h"
#include "scheduling/policies/victim_policy.h"

namespace sublet::scheduling {

class ProgramBook;

struct Policies {
  std::unique_ptr<JobPolicy> job;
  std::unique_ptr<MachinePolicy> machine;
  std::unique_ptr<VictimPolicy> victim;  // null: nobody gives way
  uint64_t candidates = 1;               // PolicyChoice::candidates
  Micros wide_wait = 0;                  // PolicyChoice::wide_wait
  bool want_indices() const {
    return job->wants_indices() || (victim != nullptr && victim->wants_indices());
  }
};
// Those that the parameters name, all of which are known. The books live as long.
Policies make_policies(const Parameters& parameters, const Ledger& ledger,
                       const ProgramBook& programs);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_POLICIES_H_
