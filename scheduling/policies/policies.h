// The policies in force.
#ifndef SUBLET_SCHEDULING_POLICIES_POLICIES_H_
#define SUBLET_SCHEDULING_POLICIES_POLICIES_H_

#include <cstdint>
#include <memory>

#include "scheduling/policies/job_policy.h"
#include "scheduling/policies/machine_policy.h"

namespace sublet::scheduling {

struct Policies {
  std::unique_ptr<JobPolicy> job;
  std::unique_ptr<MachinePolicy> machine;
  uint64_t candidates = 1;  // PolicyChoice::candidates
};
// Those that the parameters name, all of which are known. `ledger` lives as long.
Policies make_policies(const Parameters& parameters, const Ledger& ledger);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_POLICIES_H_
