#include "scheduling/policies/machine_policies.h"

#include "scheduling/policies/machines/any_machine.h"
#include "scheduling/policies/machines/best_fit.h"
#include "scheduling/policies/machines/fastest.h"
#include "scheduling/policies/machines/fifo_idle.h"
#include "scheduling/policies/machines/longest_free.h"
#include "scheduling/policies/machines/predicted.h"
#include "scheduling/policies/machines/umol.h"

namespace sublet::scheduling {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<MachinePolicy> (*make)(const ProgramBook&);
};

template <typename Policy>
std::unique_ptr<MachinePolicy> make(const ProgramBook& programs) {
  if constexpr (std::is_constructible_v<Policy, const ProgramBook&>)
    return std::make_unique<Policy>(programs);
  else
    return std::make_unique<Policy>();
}

// The default first.
constexpr Entry kEntries[] = {
    {"fifo-idle", make<FifoIdle>},  {"longest-free", make<LongestFree>},
    {"best-fit", make<BestFit>},    {"fastest", make<Fastest>},
    {"predicted", make<Predicted>}, {"umol-score", make<UmolScore>},
    {"umol-beta", make<UmolBeta>},  {"random", make<AnyMachine>},
};

}  // namespace

std::unique_ptr<MachinePolicy> make_machine_policy(const PolicyChoice& choice,
                                                   const ProgramBook& programs) {
  for (const Entry& entry : kEntries)
    if (choice.machine_policy == entry.name) return entry.make(programs);
  return nullptr;
}

std::vector<std::string> known_machine_policies() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

}  // namespace sublet::scheduling
