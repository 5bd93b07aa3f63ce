// "fair-share": a user who holds fewer cores than are due to him gets places of who holds the most
// beyond what is due to himself, until neither could be taken back. What is due to a user: the
// cores in use, divided among the active users by their shares.
#ifndef SUBLET_SCHEDULING_POLICIES_VICTIMS_BY_SHARE_H_
#define SUBLET_SCHEDULING_POLICIES_VICTIMS_BY_SHARE_H_

#include "scheduling/books/attempt_book.h"
#include "scheduling/books/job_book.h"
#include "scheduling/books/ledger.h"
#include "scheduling/policies/victim_policy.h"
#include "scheduling/queries/text.h"

namespace sublet::scheduling {

class ByShare : public VictimPolicy {
 public:
  explicit ByShare(const Ledger& ledger) : ledger_(ledger) {}
  std::optional<double> claim(const User& waiting) const override {
    const double due = ledger_.due_to(waiting), has = cores(waiting);
    if (has + 1 > due) return std::nullopt;
    return has / due;
  }
  double burden(const User& holder) const override {
    return cores(holder) - ledger_.due_to(holder);
  }
  bool may_take(const User& holder, const User& waiting) const override {
    return &holder != &waiting && burden(holder) >= 1;
  }
  bool gives_way(const Attempt& attempt, const Job& job) const override {
    const double wanted = static_cast<double>(amounts_of(job.record.needs).cores);
    return static_cast<double>(attempt.reserved.cores) <= burden(*attempt.user) &&
           cores(*job.user) + wanted <= ledger_.due_to(*job.user);
  }
  std::string reason(const Attempt& attempt, const Job& job) const override {
    const auto standing = [&](const User& user) {
      return user.record.name + " holds " + number_text(cores(user)) + " of the " +
             counted_cores(ledger_.due_to(user)) + " due";
    };
    return standing(*job.user) + ", " + standing(*attempt.user);
  }

 private:
  // Those that he is promised are his, and those that he is giving up are not.
  static double cores(const User& user) {
    return static_cast<double>(user.held + user.promised) - static_cast<double>(user.yielding);
  }
  static std::string counted_cores(double cores) {
    return number_text(cores) + (cores == 1 ? " core" : " cores");
  }

  const Ledger& ledger_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_VICTIMS_BY_SHARE_H_
