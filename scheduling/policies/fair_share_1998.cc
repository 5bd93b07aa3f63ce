#include "scheduling/policies/fair_share_1998.h"

#include "scheduling/queries/text.h"

namespace sublet::scheduling {

std::string FairShare1998::standing(const User& user, const JobRecord& job, Micros now) const {
  const UserRecord& record = user.record;
  return record.name + ", priority " + number_text(shown(user, job, now)) + " (usage " +
         number_text(record.usage) + " CPU s, " + std::to_string(user.waiting) + " active, " +
         shares_text(record.shares) + ")";
}

}  // namespace sublet::scheduling
