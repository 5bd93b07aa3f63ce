// At each tick, places are taken for users whose jobs wait (policies/victim_policy.h).
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

// Of one tick: so many attempts are looked at, at most.
constexpr size_t kLookedAt = 4096;

// Whether the attempt's place could be had by another's job, were it free.
bool may_be_taken(const Attempt& attempt) {
  const Machine& m = *attempt.machine;
  return attempt.job != nullptr && attempt.user != nullptr &&
         is_at_work(attempt.job->record.state) &&
         precedes(attempt.record.state, AttemptState::kLeaving) && m.promised_to == nullptr &&
         m.away && !m.silent && !is_gone(m) && !m.record.draining && !rests(m) &&
         m.running.size() <= places_of(m);
}

// Of one user's, the one that he can do without best: by his own priorities, and of equal ones
// that which has worked for the shortest time.
bool gives_way_before(const Attempt* a, const Attempt* b) {
  const auto key = [](const Attempt& attempt) {
    return std::tuple(attempt.job->record.priority, -attempt.record.decided,
                      -static_cast<int64_t>(attempt.record.key.job));
  };
  return key(*a) < key(*b);
}

class Preemption {
 public:
  explicit Preemption(Pool::State& state) : s_(state), policy_(*state.policies.victim) {
    for (const auto& [id, attempt] : s_.attempts.all())
      if (may_be_taken(attempt)) places_[attempt.user].push_back(s_.attempts.find(id));
    for (auto& [user, attempts] : places_) {
      std::sort(attempts.begin(), attempts.end(), gives_way_before);
      holders_.insert(holder(user));
    }
  }

  void run() {
    std::vector<std::tuple<double, uint32_t, const User*>> claims;
    for (const auto& [name, user] : s_.ledger.users())
      if (user.waiting > 0 && !is_passed_over(user))
        if (const auto claim = policy_.claim(user))
          claims.emplace_back(*claim, user.record.number, &user);
    std::sort(claims.begin(), claims.end());
    for (const auto& [claim, number, user] : claims) serve(*user);
  }

 private:
  // Sorted by the burden, the largest first.
  using Holder = std::tuple<double, uint32_t, const User*>;
  Holder holder(const User* user) const {
    return {-policy_.burden(*user), user->record.number, user};
  }

  void serve(const User& waiting) {
    if (policy_.may_take(waiting, waiting) && take_from(waiting, waiting)) return;
    for (const auto& [burden, number, user] : holders_) {
      if (looked_at_ >= kLookedAt || !policy_.may_take(*user, waiting)) return;
      if (user != &waiting && take_from(*user, waiting)) return;
    }
  }

  bool take_from(const User& user, const User& waiting) {
    const auto found = places_.find(&user);
    if (found == places_.end()) return false;
    std::vector<Attempt*>& attempts = found->second;
    for (auto it = attempts.begin(); it != attempts.end() && looked_at_ < kLookedAt; ++it) {
      ++looked_at_;
      Attempt& attempt = **it;
      Machine& m = *attempt.machine;
      if (m.promised_to != nullptr) continue;
      Job* job = s_.matcher.queue().best_unpromised(
          waiting, m, space_without(m, attempt.reserved, attempt.named));
      if (job == nullptr || !policy_.gives_way(attempt, *job)) continue;
      // What they hold from now on changes their burdens.
      for (const User* one : {&user, &waiting}) holders_.erase(holder(one));
      attempts.erase(it);
      s_.take_place(attempt, *job, policy_.reason(attempt, *job));
      for (const User* one : {&user, &waiting})
        if (places_.contains(one)) holders_.insert(holder(one));
      return true;
    }
    return false;
  }

  Pool::State& s_;
  const VictimPolicy& policy_;
  std::map<const User*, std::vector<Attempt*>> places_;
  std::set<Holder> holders_;
  size_t looked_at_ = 0;
};

}  // namespace

void Pool::State::preempt() {
  if (policies.victim != nullptr && jobs.waiting() > 0) Preemption(*this).run();
}

void Pool::State::take_place(Attempt& attempt, Job& job, const std::string& why) {
  promise(job, *attempt.machine);
  attempts.give_up(
      attempt, job.record.id,
      "for job " + std::to_string(job.record.id) + " of " + job.record.user + ": " + why);
  tell_to_leave(attempt, LeaveReason::kPreempt);
}

}  // namespace sublet::scheduling
