// At each tick, places are taken for users whose jobs wait (policies/victim_policy.h).
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

// Of one tick: so many attempts are looked at, at most; for one user; and of one user's.
constexpr size_t kLookedAt = 4096;
constexpr size_t kLookedAtFor = 512;
constexpr size_t kLookedAtOf = 64;
// So many ticks an attempt runs at least before it gives way.
constexpr Micros kLeastTicks = 5;

bool makes_room(const Machine& m) {
  return m.promised_to == nullptr && m.away && m.paused_until == 0 && !m.silent && !is_gone(m) &&
         !m.record.draining && !rests(m) && places_taken(m) <= places_of(m);
}

// Whether the attempt may give way. A job that was evicted before and has never saved anything
// might never end.
bool may_give_way(const Attempt& attempt, Micros ran_at_least, Micros now) {
  if (attempt.job == nullptr || attempt.user == nullptr || attempt.ahead) return false;
  const JobRecord& job = attempt.job->record;
  return attempt.record.state == AttemptState::kRunning && job.state == JobState::kRunning &&
         now - attempt.record.started >= ran_at_least &&
         (job.evictions == 0 || job.generation > 0) && makes_room(*attempt.machine);
}

// Of one user's, the one that he can do without best: by his own priorities; then that which was
// evicted least often, which holds the fewest cores, and which was started last.
bool gives_way_before(const Attempt* a, const Attempt* b) {
  const auto key = [](const Attempt& attempt) {
    const JobRecord& job = attempt.job->record;
    return std::tuple(job.priority, job.evictions, attempt.reserved.cores, -attempt.record.decided,
                      -static_cast<int64_t>(job.id));
  };
  return key(*a) < key(*b);
}

class Preemption {
 public:
  explicit Preemption(Pool::State& state) : s_(state), policy_(*state.policies.victim) {
    const Micros tick = s_.parameters.tick, now = s_.changes.now();
    round_ = static_cast<uint64_t>(now / tick);
    for (const auto& [id, attempt] : s_.attempts.all())
      if (may_give_way(attempt, kLeastTicks * tick, now))
        places_[attempt.user].push_back(s_.attempts.find(id));
    for (auto& [user, attempts] : places_) {
      std::sort(attempts.begin(), attempts.end(), gives_way_before);
      holders_.insert(holder(user));
    }
  }

  void run() {
    std::vector<std::tuple<double, uint32_t, const User*>> claims;
    for (const auto& [name, user] : s_.ledger.users())
      if (user.waiting > 0 && !user.record.has_forgone && !is_passed_over(user) &&
          !will_be_at_limit(user))
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

  // With the places that he is promised, of which the cores are counted: so no place is taken for
  // him that he might not be given.
  bool will_be_at_limit(const User& user) const {
    const uint64_t most = s_.parameters.most_per_user;
    return most > 0 && user.attempts + user.promised >= most;
  }

  void serve(const User& waiting) {
    looked_for_ = 0;
    if (policy_.may_take(waiting, waiting) && take_from(waiting, waiting)) return;
    for (const auto& [burden, number, user] : holders_) {
      if (looked_for_ >= kLookedAtFor || looked_at_ >= kLookedAt) return;
      if (!policy_.may_take(*user, waiting)) return;
      if (user != &waiting && take_from(*user, waiting)) return;
    }
  }

  // Looks at the first ones, or, if there are too many for one tick, at others at each.
  bool take_from(const User& user, const User& waiting) {
    const auto found = places_.find(&user);
    if (found == places_.end()) return false;
    std::vector<Attempt*>& attempts = found->second;
    const size_t looks = std::min(attempts.size(), kLookedAtOf);
    const size_t first = attempts.size() > looks ? round_ * looks % attempts.size() : 0;
    for (size_t i = 0; i < looks; ++i) {
      ++looked_at_;
      ++looked_for_;
      const size_t at = (first + i) % attempts.size();
      if (!take(*attempts[at], waiting)) continue;
      attempts.erase(attempts.begin() + static_cast<std::ptrdiff_t>(at));
      return true;
    }
    return false;
  }

  bool take(Attempt& attempt, const User& waiting) {
    Machine& m = *attempt.machine;
    if (m.promised_to != nullptr || is_left(m)) return false;
    const Space space = space_without(m, attempt.reserved, attempt.named);
    Job* job = s_.matcher.queue().best_of(waiting, m, {space, Among::kUnpromised});
    if (job == nullptr || !policy_.gives_way(attempt, *job)) return false;
    // What they hold from now on changes their burdens.
    const User* const both[] = {attempt.user, &waiting};
    for (const User* user : both) holders_.erase(holder(user));
    s_.take_place(attempt, *job, policy_.reason(attempt, *job));
    for (const User* user : both)
      if (places_.contains(user)) holders_.insert(holder(user));
    return true;
  }

  // Room will be made there anyway.
  bool is_left(const Machine& m) const {
    return std::ranges::any_of(m.running, [&](JobId id) {
      return s_.attempts.find(id)->record.state == AttemptState::kLeaving;
    });
  }

  Pool::State& s_;
  const VictimPolicy& policy_;
  std::map<const User*, std::vector<Attempt*>> places_;
  std::set<Holder> holders_;
  uint64_t round_ = 0;  // counts the ticks
  size_t looked_at_ = 0;
  size_t looked_for_ = 0;
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
