// "random": a user drawn anew for every place, each with the same chance (Mutka 4.4.2).
// Drawn from the number of the last grant, so that equal histories give equal outcomes.
#ifndef SUBLET_SCHEDULING_POLICIES_LOTTERY_H_
#define SUBLET_SCHEDULING_POLICIES_LOTTERY_H_

#include "scheduling/policies/job_policy.h"

namespace sublet::scheduling {

class Lottery : public JobPolicy {
 public:
  Lottery(const Parameters&, const Ledger& ledger) : ledger_(ledger) {}
  UserKey key(const User& user, const JobRecord&, double) const override {
    return {0, static_cast<double>(drawn(user) >> 11)};
  }
  bool wants_grants() const override { return true; }
  std::string standing(const User& user, const JobRecord&, Micros) const override {
    return user.record.name + ", drawn at random";
  }
  double shown(const User&, const JobRecord&, Micros) const override { return 0; }

 private:
  // splitmix64
  uint64_t drawn(const User& user) const {
    uint64_t x = ledger_.last_grant() * 0x9e3779b97f4a7c15u + user.record.number;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  const Ledger& ledger_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_LOTTERY_H_
