// "fair-share": users by their present usage per share (design, section 6).
//
// - Present usage is the decayed usage with the charges since the last tick. Running attempts
//   are charged at each renewal for their core time, and settled at their end.
// - What counts is the larger of CPU time and core time (cores * wall time).
// - Of users with equal usage, he comes first who has waited longest for a place.
// - To prevent starvation, a user who has had less than a fraction (`floor`, a quarter) of the
//   cores due to him goes first, until he holds that many, and at least one. What he has had is
//   counted over time (UserRecord::owed), because a user of a small pool holds one core or none.
// - Among the jobs of one user, (3.4) of the source counts, as in "fair-share-1998".
#ifndef SUBLET_SCHEDULING_POLICIES_FAIR_SHARE_H_
#define SUBLET_SCHEDULING_POLICIES_FAIR_SHARE_H_

#include "scheduling/policies/fair_share_1998.h"

namespace sublet::scheduling {

class FairShare : public FairShare1998 {
 public:
  FairShare(const Parameters& parameters, const Ledger& ledger)
      : FairShare1998(parameters, ledger),
        floor_(parameters.floor),
        cpu_only_(parameters.cost_cpu) {}

  bool by_job() const override { return false; }
  UserKey key(const User& user) const override;
  bool wants_grants() const override { return true; }
  bool turns_by_host() const override { return false; }
  bool charges_while_running() const override { return !cpu_only_; }
  bool keeps_balances() const override { return true; }
  Micros charge(const Cost& cost, Micros held) const override;
  Sentence standing(const User& user, const JobRecord& job, Micros now) const override;
  double shown(const User& user, const JobRecord& best, Micros now) const override;

 private:
  bool is_deprived(const User& user) const;

  const double floor_;
  const bool cpu_only_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_FAIR_SHARE_H_
