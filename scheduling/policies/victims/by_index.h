// "up-down": a user who holds no place gets one of the user with the largest index, if that is
// larger than his own (Mutka, 4.4.1, table 4.2, by user; with the victim taken out of S1, where the
// printed line adds it: only who holds nothing pre-empts, and gets one place at a time).
#ifndef SUBLET_SCHEDULING_POLICIES_VICTIMS_BY_INDEX_H_
#define SUBLET_SCHEDULING_POLICIES_VICTIMS_BY_INDEX_H_

#include "scheduling/books/attempt_book.h"
#include "scheduling/books/job_book.h"
#include "scheduling/policies/victim_policy.h"

namespace sublet::scheduling {

class ByIndex : public VictimPolicy {
 public:
  explicit ByIndex(const Ledger&) {}
  bool wants_indices() const override { return true; }
  std::optional<double> claim(const User& waiting) const override {
    if (waiting.attempts > 0 || waiting.promised > 0) return std::nullopt;
    return index_of(waiting);
  }
  double burden(const User& holder) const override { return index_of(holder); }
  bool may_take(const User& holder, const User& waiting) const override {
    return index_of(holder) > index_of(waiting);
  }
  bool gives_way(const Attempt&, const Job&) const override { return true; }
  std::string reason(const Attempt& attempt, const Job& job) const override {
    return job.user->record.name + " holds no place, up-down index " + number(*job.user) +
           " against " + number(*attempt.user);
  }

 private:
  static double index_of(const User& user) { return static_cast<double>(user.record.index); }
  static std::string number(const User& user) { return std::to_string(user.record.index); }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_VICTIMS_BY_INDEX_H_
