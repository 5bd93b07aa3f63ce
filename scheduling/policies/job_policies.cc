#include "scheduling/policies/job_policies.h"

#include "scheduling/policies/fair_share.h"
#include "scheduling/policies/fair_share_1998.h"
#include "scheduling/policies/fifo.h"
#include "scheduling/policies/lottery.h"
#include "scheduling/policies/round_robin.h"
#include "scheduling/policies/umol.h"
#include "scheduling/policies/up_down.h"

namespace sublet::scheduling {
namespace {

struct Entry {
  const char* name;
  std::unique_ptr<JobPolicy> (*make)(const Parameters& parameters, const Ledger& ledger);
};

template <typename Policy>
std::unique_ptr<JobPolicy> make(const Parameters& parameters, const Ledger& ledger) {
  return std::make_unique<Policy>(parameters, ledger);
}

// The default first.
constexpr Entry kEntries[] = {
    {"fair-share", make<FairShare>},
    {"fair-share-1998", make<FairShare1998>},
    {"up-down", make<UpDown>},
    {"fifo", make<Fifo>},
    {"round-robin", make<RoundRobin>},
    {"random", make<Lottery>},
    {"umol", make<Umol>},
};

}  // namespace

std::unique_ptr<JobPolicy> make_job_policy(const Parameters& parameters, const Ledger& ledger) {
  for (const Entry& entry : kEntries)
    if (parameters.job_policy == entry.name) return entry.make(parameters, ledger);
  return nullptr;
}

std::vector<std::string> known_job_policies() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

}  // namespace sublet::scheduling
