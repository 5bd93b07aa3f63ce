#include "scheduling/policies/fair_share.h"

#include "scheduling/queries/text.h"

namespace sublet::scheduling {
namespace {
double present_usage(const User& user) { return user.record.usage + user.record.charges; }
}  // namespace

bool FairShare::is_deprived(const User& user) const {
  return floor_ > 0 && user.held < user.record.guaranteed;
}

UserKey FairShare::key(const User& user) const {
  return {is_deprived(user) ? 0.0 : 1.0, present_usage(user) / user.record.shares,
          user.record.last_grant};
}

Micros FairShare::charge(const Cost& cost, Micros held) const {
  if (cpu_only_ || held <= cost.used) return cost.charged;
  if (cost.in_full) return held;
  if (cost.used == 0) return 0;
  // The same fraction of the core time as of the CPU time.
  return static_cast<Micros>(static_cast<double>(held) * static_cast<double>(cost.charged) /
                             static_cast<double>(cost.used));
}

std::string FairShare::standing(const User& user, const JobRecord&, Micros) const {
  const UserRecord& record = user.record;
  std::string text;
  text.reserve(record.name.size() + 100);  // one is made for each attempt
  text.append(record.name).append(", usage ").append(number_text(present_usage(user)));
  text.append(" CPU s for ").append(shares_text(record.shares));
  if (is_deprived(user))
    text.append(", ").append(number_text(record.owed)).append(" core s short of the guarantee");
  return text;
}

double FairShare::shown(const User& user, const JobRecord&, Micros) const {
  return present_usage(user) / user.record.shares;
}

}  // namespace sublet::scheduling
