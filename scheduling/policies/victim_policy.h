// Who gives way: the interface of the policies that take places for users whose jobs wait and fit
// no idle machine. Each is one file in victims/, registered in one line of victim_policies.cc.
//
// At each tick each user is given one such place at most, in the order of their claims: of the
// first holder, in the order of their burdens, who has an attempt that gives way to the best of the
// user's jobs that fit in its place (events/preemption.cc). The attempt saves and leaves, as in an
// eviction, and its place is promised to that job (matching/promises.h).
//
// A policy has no state of its own: what it knows is in the records of users, jobs and attempts.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_POLICIES_VICTIM_POLICY_H_
#define SUBLET_SCHEDULING_POLICIES_VICTIM_POLICY_H_

#include <optional>
#include <string>

namespace sublet::scheduling {

struct Attempt;
struct Job;
struct User;

class VictimPolicy {
 public:
  virtual ~VictimPolicy() = default;

  // Whether the users' up-down indices are kept (Ledger::update_indices).
  virtual bool wants_indices() const { return false; }
  // The order of the users whose jobs wait: smaller is sooner. std::nullopt: nothing is taken for
  // him now.
  virtual std::optional<double> claim(const User& waiting) const = 0;
  // The order of those who hold places: larger gives way sooner.
  virtual double burden(const User& holder) const = 0;
  // Whether places of this user are taken for that one. If not, then none of those with smaller
  // burdens either; but a user's own places are asked for apart.
  virtual bool may_take(const User& holder, const User& waiting) const = 0;
  // Whether this attempt of such a holder gives way to this job.
  virtual bool gives_way(const Attempt& attempt, const Job& job) const = 0;
  // Why: "bob holds no place, ...".
  virtual std::string reason(const Attempt& attempt, const Job& job) const = 0;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_VICTIM_POLICY_H_
