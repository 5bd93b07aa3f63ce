// "umol": the user with the fewest live attempts, then the oldest last grant, then the smallest
// number (the order of DMW's umpire, 4.4.2).
#ifndef SUBLET_SCHEDULING_POLICIES_UMOL_H_
#define SUBLET_SCHEDULING_POLICIES_UMOL_H_

#include "scheduling/policies/job_policy.h"

namespace sublet::scheduling {

class Umol : public JobPolicy {
 public:
  Umol(const Parameters&, const Ledger&) {}
  UserKey key(const User& user) const override {
    return {0, static_cast<double>(user.attempts), user.turn_owed ? 0 : user.record.last_grant};
  }
  bool wants_grants() const override { return true; }
  Sentence standing(const User& user, const JobRecord&, Micros) const override {
    return [name = user.record.name, attempts = user.attempts] {
      return name + ", who has " + std::to_string(attempts) + " running";
    };
  }
  double shown(const User& user, const JobRecord&, Micros) const override {
    return static_cast<double>(user.attempts);
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_UMOL_H_
