#include "scheduling/policies/policies.h"

#include "scheduling/policies/job_policies.h"
#include "scheduling/policies/machine_policies.h"
#include "scheduling/policies/victim_policies.h"

namespace sublet::scheduling {

Policies make_policies(const Parameters& parameters, const Ledger& ledger,
                       const ProgramBook& programs) {
  return {make_job_policy(parameters, ledger), make_machine_policy(parameters, programs),
          make_victim_policy(parameters, ledger), parameters.candidates, parameters.wide_wait};
}

}  // namespace sublet::scheduling
