// "fair-share-1998": the source's fair share, exactly (3.3.3 of Raman, docs/fair-share.md). A
// job's priority is fixed when it is submitted or returns (3.4); the best job of all is next.
#ifndef SUBLET_SCHEDULING_POLICIES_FAIR_SHARE_1998_H_
#define SUBLET_SCHEDULING_POLICIES_FAIR_SHARE_1998_H_

#include "scheduling/policies/job_policy.h"

namespace sublet::scheduling {

class FairShare1998 : public JobPolicy {
 public:
  FairShare1998(const Parameters& parameters, const Ledger&)
      : drift_(parameters.drift, parameters.half_life),
        turns_by_host_(parameters.turns_by_machine) {}

  bool by_job() const override { return true; }
  double order(const JobRecord& job) const override {
    return drift_.order(job.share_priority, job.share_priority_at);
  }
  bool turns_by_host() const override { return turns_by_host_; }

  Sentence standing(const User& user, const JobRecord& job, Micros now) const override;
  double shown(const User&, const JobRecord& best, Micros now) const override {
    return drift_.value_at(best.share_priority, best.share_priority_at, now);
  }

 private:
  const Drift drift_;
  const bool turns_by_host_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_FAIR_SHARE_1998_H_
