// The ledger: the users, their shares, and what they have used (formulas 3.1 to 3.3 of the
// source, docs/fair-share.md). It owns their records; a user who has no jobs, no usage and
// no shares of his own is forgotten, but stays stored.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_LEDGER_H_
#define SUBLET_SCHEDULING_BOOKS_LEDGER_H_

#include <map>
#include <string>
#include <vector>

#include "scheduling/books/changes.h"
#include "scheduling/events/events.h"
#include "scheduling/parameters.h"

namespace sublet::scheduling {

struct Job;

struct User {
  UserRecord record;
  uint32_t index = 0;  // never reused
  // Counted by the job book alone:
  uint64_t waiting = 0;  // jobs in state waiting: the `active` of formula 3.4
  uint64_t active = 0;   // waiting, placed or running
  uint64_t jobs = 0;     // live records, an array counts once
  // Counted by the attempt book alone: live ones, including those of removed jobs.
  uint64_t attempts = 0;
  bool touched = false;
  // The user's best job in the search numbered `search`: the job queue's.
  uint64_t search = 0;
  Job* best = nullptr;
};

class Ledger {
 public:
  explicit Ledger(const Parameters& parameters);

  const std::map<std::string, User>& users() const { return users_; }
  // The user of this name, made with the default shares if necessary.
  User& user(const std::string& name);
  // False: these are no shares, and nothing was changed.
  bool set_shares(const SharesSet& event);
  // (3.3): `cpu` of an attempt that has ended. 0 changes nothing.
  void charge(User& user, Micros cpu);
  // (3.1) and (3.2), for a time without charges. The time of a stopped server counts.
  void decay(Micros since_last_tick);
  // Takes over a stored row; values that cannot be right are replaced. Returns a sentence
  // for each of those.
  std::vector<std::string> restore(const UserRecord& row);

  // The user lost a job or an attempt, and may not be worth knowing any more.
  void note_loss(User& user) { perhaps_spare_.push_back(&user); }
  void emit(Changes& changes);
  // Last in an apply: nobody may hold a user who is not worth knowing.
  void forget_spare();
  // After a restoration: nothing is to be stored.
  void settle();

 private:
  bool worth_knowing(const User& user) const;

  const double default_shares_;
  const Micros tick_;
  const double k1_;
  std::map<std::string, User> users_;
  uint32_t last_index_ = 0;
  Touched<User> touched_;
  std::vector<User*> perhaps_spare_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_LEDGER_H_
