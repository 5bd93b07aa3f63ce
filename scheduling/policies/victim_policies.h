// The policies for "who gives way", by name.
#ifndef SUBLET_SCHEDULING_POLICIES_VICTIM_POLICIES_H_
#define SUBLET_SCHEDULING_POLICIES_VICTIM_POLICIES_H_

#include <memory>
#include <string>
#include <vector>

#include "scheduling/parameters.h"
#include "scheduling/policies/victim_policy.h"

namespace sublet::scheduling {

class Ledger;

// The policy that the choice names; null: nobody gives way ("none"), or it is not known. `ledger`
// lives as long.
std::unique_ptr<VictimPolicy> make_victim_policy(const PolicyChoice& choice, const Ledger& ledger);
// The default first.
std::vector<std::string> known_victim_policies();

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_VICTIM_POLICIES_H_
