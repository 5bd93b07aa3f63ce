// "round-robin": users in turn, in a fixed cycle; one who has no waiting job is skipped
// (Mutka 4.4.2; by user, or by account, where the source goes by station). One whose turn came to
// nothing is served before the circle goes on.
#ifndef SUBLET_SCHEDULING_POLICIES_ROUND_ROBIN_H_
#define SUBLET_SCHEDULING_POLICIES_ROUND_ROBIN_H_

#include "scheduling/policies/job_policy.h"

namespace sublet::scheduling {

class RoundRobin : public JobPolicy {
 public:
  RoundRobin(const Parameters&, const Ledger& ledger) : ledger_(ledger) {}
  UserKey key(const User& user) const override {
    return {user.turn_owed ? 0.0 : kInCircle, 0, user.record.number};
  }
  std::optional<UserKey> from() const override {
    return UserKey{kInCircle, 0, ledger_.last_served()};
  }
  bool wants_grants() const override { return true; }
  Sentence standing(const User& user, const JobRecord&, Micros) const override {
    return [name = user.record.name] { return name + ", whose turn it is"; };
  }
  double shown(const User& user, const JobRecord&, Micros) const override {
    return static_cast<double>(user.record.number);
  }

 private:
  static constexpr double kInCircle = 1;
  const Ledger& ledger_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_ROUND_ROBIN_H_
