// "random": a user drawn anew for every place, each with the same chance (Mutka 4.4.2), except that
// one whose jobs fitted no machine when he was drawn is served as soon as one fits.
#ifndef SUBLET_SCHEDULING_POLICIES_LOTTERY_H_
#define SUBLET_SCHEDULING_POLICIES_LOTTERY_H_

#include "scheduling/policies/job_policy.h"

namespace sublet::scheduling {

class Lottery : public JobPolicy {
 public:
  Lottery(const Parameters&, const Ledger& ledger) : ledger_(ledger) {}
  UserKey key(const User& user) const override { return {0, ledger_.draw_of(user)}; }
  bool wants_draws() const override { return true; }
  Sentence standing(const User& user, const JobRecord&, Micros) const override {
    return [name = user.record.name] { return name + ", drawn at random"; };
  }
  double shown(const User&, const JobRecord&, Micros) const override { return 0; }

 private:
  const Ledger& ledger_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_LOTTERY_H_
