// The policies for "which machine", by name.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINE_POLICIES_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINE_POLICIES_H_

#include <memory>
#include <string>
#include <vector>

#include "scheduling/parameters.h"
#include "scheduling/policies/machine_policy.h"

namespace sublet::scheduling {

class ProgramBook;

// The policy that the parameters name; null: it is not known. `programs` lives as long.
std::unique_ptr<MachinePolicy> make_machine_policy(const PolicyChoice& choice,
                                                   const ProgramBook& programs);
// The default first.
std::vector<std::string> known_machine_policies();

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINE_POLICIES_H_
