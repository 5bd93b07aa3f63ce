// Which job next: the interface of the policies that order the waiting jobs. Each is one
// file in this folder, registered in one line of job_policies.cc.
//
// A machine serves the users in the order of their keys, or of their best jobs, and of one user the
// best job that fits it. The user's own priority orders his jobs under every policy, then `order`,
// then the id. A policy keeps what it knows in the records of users and jobs, so that a restored
// brain goes on exactly like one that was never stopped.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_POLICIES_JOB_POLICY_H_
#define SUBLET_SCHEDULING_POLICIES_JOB_POLICY_H_

#include <optional>
#include <string>

#include "scheduling/books/ledger.h"
#include "scheduling/fair_share.h"
#include "scheduling/policies/user_key.h"
#include "scheduling/records.h"
#include "scheduling/sentence.h"

namespace sublet::scheduling {

class JobPolicy {
 public:
  virtual ~JobPolicy() = default;

  // ---- orders ----
  // Whether users are served in the order of their best jobs, whichever has the smallest `order`;
  // otherwise in the order of their keys.
  virtual bool by_job() const { return false; }
  // It depends on nothing but the user's record and counts, whose changes the ledger notes
  // (Ledger::moved). If his last turn came to nothing (User::turn_owed), he is to stand where he
  // stood before it.
  virtual UserKey key(const User& user) const {
    (void)user;
    return {};
  }
  // Users whose keys are behind this one are served first, as in a circle; before them those with
  // keys of smaller ranks. std::nullopt: there is no circle.
  virtual std::optional<UserKey> from() const { return std::nullopt; }
  // The order of a job among those of its user: smaller is earlier. It may not change while
  // the job waits.
  virtual double order(const JobRecord& job) const {
    (void)job;
    return 0;
  }
  // Whether a machine takes the best job of the host nearest to the head of REQUESTING that has
  // a fitting job, regardless of other hosts' jobs.
  virtual bool turns_by_host() const { return false; }

  // ---- what is counted ----
  // Whether the numbers of the users' last grants are to be recorded (UserRecord::last_grant).
  virtual bool wants_grants() const { return false; }
  // Whether a user is drawn for each place (Ledger::draw_of).
  virtual bool wants_draws() const { return false; }
  // Whether the users' up-down indices are kept (Ledger::update_indices).
  virtual bool wants_indices() const { return false; }
  // Whether running attempts are charged at each renewal for their core time.
  virtual bool charges_while_running() const { return false; }
  // Whether a guarantee's balance is kept for each user (Ledger::note_held).
  virtual bool keeps_balances() const { return false; }
  // The cost of an attempt that has ended; by default CPU time. `held`: its core time.
  virtual Micros charge(const Cost& cost, Micros held) const {
    (void)held;
    return cost.charged;
  }

  // ---- words ----
  // Who has this job, and why it comes first: "ann, priority 25 (usage 100 CPU s, ...)". Asked for
  // each placement; put into words where that is stored, or when somebody asks.
  virtual Sentence standing(const User& user, const JobRecord& job, Micros now) const = 0;
  // The number by which the user stands where he does, for reports; smaller is better.
  virtual double shown(const User& user, const JobRecord& best, Micros now) const = 0;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_JOB_POLICY_H_
