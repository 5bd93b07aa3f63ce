// "priority": a user's job gives way to one of his own to which he has given a higher priority.
// The priorities of different users are not compared, even if the users share an account.
#ifndef SUBLET_SCHEDULING_POLICIES_VICTIMS_BY_PRIORITY_H_
#define SUBLET_SCHEDULING_POLICIES_VICTIMS_BY_PRIORITY_H_

#include "scheduling/books/attempt_book.h"
#include "scheduling/books/job_book.h"
#include "scheduling/policies/victim_policy.h"

namespace sublet::scheduling {

class ByPriority : public VictimPolicy {
 public:
  explicit ByPriority(const Ledger&) {}
  std::optional<double> claim(const User& waiting) const override {
    if (waiting.attempts == 0) return std::nullopt;
    return 0;
  }
  double burden(const User&) const override { return 0; }
  bool may_take(const User& holder, const User& waiting) const override {
    return &holder == &waiting;
  }
  bool gives_way(const Attempt& attempt, const Job& job) const override {
    return attempt.submitter == job.record.user &&
           attempt.job->record.priority < job.record.priority;
  }
  std::string reason(const Attempt& attempt, const Job& job) const override {
    return "its user gave it priority " + std::to_string(job.record.priority) + ", and this one " +
           std::to_string(attempt.job->record.priority);
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_VICTIMS_BY_PRIORITY_H_
