// "fifo": jobs in the order of their submission, whoever submitted them. A job that returns
// keeps its place.
#ifndef SUBLET_SCHEDULING_POLICIES_FIFO_H_
#define SUBLET_SCHEDULING_POLICIES_FIFO_H_

#include "scheduling/policies/job_policy.h"

namespace sublet::scheduling {

class Fifo : public JobPolicy {
 public:
  Fifo(const Parameters&, const Ledger&) {}
  bool by_job() const override { return true; }
  double order(const JobRecord& job) const override { return static_cast<double>(job.id); }
  Sentence standing(const User& user, const JobRecord& job, Micros) const override {
    return [name = user.record.name, id = job.id] {
      return name + ", whose job " + std::to_string(id) + " came first";
    };
  }
  double shown(const User&, const JobRecord& best, Micros) const override {
    return static_cast<double>(best.id);
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_FIFO_H_
