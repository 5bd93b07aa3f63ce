#include "scheduling/policies/victim_policies.h"

#include "scheduling/policies/victims/by_index.h"
#include "scheduling/policies/victims/by_priority.h"
#include "scheduling/policies/victims/by_share.h"

namespace sublet::scheduling {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<VictimPolicy> (*make)(const Ledger& ledger);
};

template <typename Policy>
std::unique_ptr<VictimPolicy> make(const Ledger& ledger) {
  return std::make_unique<Policy>(ledger);
}

std::unique_ptr<VictimPolicy> nobody(const Ledger&) { return nullptr; }

// The default first.
constexpr Entry kEntries[] = {
    {"none", nobody},
    {"up-down", make<ByIndex>},
    {"fair-share", make<ByShare>},
    {"priority", make<ByPriority>},
};

}  // namespace

std::unique_ptr<VictimPolicy> make_victim_policy(const PolicyChoice& choice, const Ledger& ledger) {
  for (const Entry& entry : kEntries)
    if (choice.victim_policy == entry.name) return entry.make(ledger);
  return nullptr;
}

std::vector<std::string> known_victim_policies() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

}  // namespace sublet::scheduling
