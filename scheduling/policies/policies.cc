#include "scheduling/policies/policies.h"

#include "scheduling/policies/job_policies.h"
#include "scheduling/policies/machine_policies.h"

namespace sublet::scheduling {

Policies make_policies(const Parameters& parameters, const Ledger& ledger) {
  return {make_job_policy(parameters, ledger), make_machine_policy(parameters),
          parameters.candidates};
}

}  // namespace sublet::scheduling
