// The policies for "which job next", by name.
#ifndef SUBLET_SCHEDULING_POLICIES_JOB_POLICIES_H_
#define SUBLET_SCHEDULING_POLICIES_JOB_POLICIES_H_

#include <memory>
#include <string>
#include <vector>

#include "scheduling/parameters.h"
#include "scheduling/policies/job_policy.h"

namespace sublet::scheduling {

// The policy that the parameters name; null: it is not known. `ledger` lives as long.
std::unique_ptr<JobPolicy> make_job_policy(const Parameters& parameters, const Ledger& ledger);
// The default first.
std::vector<std::string> known_job_policies();

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_JOB_POLICIES_H_
