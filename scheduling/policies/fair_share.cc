#include "scheduling/policies/fair_share.h"

#include <optional>

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
          user.turn_owed ? 0 : user.record.last_grant};
}

Micros FairShare::charge(const Cost& cost, Micros held) const {
  if (cpu_only_ || held <= cost.used) return cost.charged;
  if (cost.in_full) return held;
  if (cost.used == 0) return 0;
  // The same fraction of the core time as of the CPU time.
  return static_cast<Micros>(static_cast<double>(held) * static_cast<double>(cost.charged) /
                             static_cast<double>(cost.used));
}

Sentence FairShare::standing(const User& user, const JobRecord&, Micros) const {
  return [name = user.record.name, usage = present_usage(user), shares = user.record.shares,
          owed = is_deprived(user) ? std::optional(user.record.owed) : std::nullopt] {
    const std::string text =
        name + ", usage " + number_text(usage) + " CPU s for " + shares_text(shares);
    if (!owed) return text;
    return text + ", " + number_text(*owed) + " core s short of the guarantee";
  };
}

double FairShare::shown(const User& user, const JobRecord&, Micros) const {
  return present_usage(user) / user.record.shares;
}

}  // namespace sublet::scheduling
