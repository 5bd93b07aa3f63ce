#include "scheduling/policies/fair_share_1998.h"

#include "scheduling/queries/text.h"

namespace sublet::scheduling {

Sentence FairShare1998::standing(const User& user, const JobRecord& job, Micros now) const {
  return [name = user.record.name, priority = shown(user, job, now), usage = user.record.usage,
          active = user.waiting, shares = user.record.shares] {
    return name + ", priority " + number_text(priority) + " (usage " + number_text(usage) +
           " CPU s, " + std::to_string(active) + " active, " + shares_text(shares) + ")";
  };
}

}  // namespace sublet::scheduling
