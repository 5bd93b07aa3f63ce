// The ledger: the users, their shares, and what they have used (formulas 3.1 to 3.3 of the
// source, docs/fair-share.md). It owns their records; a user who has no jobs, no usage and
// no shares of his own is forgotten, but stays stored.
//
// Users who share an account (Accounts) are one User, with the account's name: "@lab-f". So a User,
// here and elsewhere in the brain, is the user or account for which something is counted. Who
// submitted a job is in its record.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_LEDGER_H_
#define SUBLET_SCHEDULING_BOOKS_LEDGER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduling/accounts.h"
#include "scheduling/books/changes.h"
#include "scheduling/books/deadlines.h"
#include "scheduling/events/events.h"
#include "scheduling/matching/user_place.h"
#include "scheduling/parameters.h"

namespace sublet::scheduling {

// Its deadline is the end of the span of the throttle.
struct User : Timed {
  UserRecord record;
  // Counted by the job book alone:
  uint64_t waiting = 0;                        // jobs in state waiting: the `active` of formula 3.4
  uint64_t active = 0;                         // waiting, placed or running
  uint64_t jobs = 0;                           // live records, an array counts once
  uint64_t limited_batches = 0;                // with a limit and live jobs
  std::map<std::string, uint64_t> hours = {};  // that his live records name, and how many do
  // Counted by the attempt book alone: live ones, including those of removed jobs, and their
  // cores.
  uint64_t attempts = 0;
  uint64_t held = 0;
  uint64_t yielding = 0;   // cores of those that are giving way to others' jobs
  uint64_t promised = 0;   // cores of places promised to his jobs, counted by Promises alone
  bool throttled = false;  // gets no place before the deadline
  bool at_limit = false;   // gets none before one of his attempts has ended
  // The last place that he got came to nothing: an attempt placed ahead that was never started. He
  // is owed one turn at most, until he gets a place or the server is restarted.
  bool turn_owed = false;
  bool touched = false;
  bool moved = false;
  // The job queue's: where his jobs wait, where he stands, and the last search that has looked at
  // him.
  std::vector<std::unique_ptr<UserLine>> lines;
  UserPlace place;
  uint64_t search = 0;
};

// Gets no place, whatever fits: no search finds his jobs.
inline bool is_passed_over(const User& user) { return user.throttled || user.at_limit; }

class Ledger {
 public:
  explicit Ledger(const Parameters& parameters);

  const std::map<std::string, User>& users() const { return users_; }
  std::map<std::string, User>& users() { return users_; }
  // The user of this name, made with the default shares if necessary.
  User& user(const std::string& name);
  // Whom the jobs of this user count for.
  User& counted_for(const std::string& user) { return this->user(accounts_.of(user)); }
  // Null: nothing is known of him.
  const User* known_counted_for(const std::string& user) const;
  const Accounts& accounts() const { return accounts_; }
  // False: these are no shares, and nothing was changed.
  bool set_shares(const SharesSet& event);
  // Of usage, from the next tick on.
  void set_half_life(Micros half_life);
  // (3.3). 0 changes nothing.
  void charge(User& user, Micros cost);
  // Gives back what was charged before: what is left of it in the usage, and what was charged since
  // the last tick.
  void give_back(User& user, double usage, double charges);
  // A place was given to the user.
  void grant(User& user);
  // The user was drawn.
  void draw(User& user);
  // PolicyChoice::throttle, from now on.
  void set_throttle(uint64_t most, Micros span);
  // PolicyChoice::most_per_user, from now on.
  void set_limit(uint64_t most);
  // A place was given to the user now: it counts for the throttle, and places may be taken for him.
  void note_placed(User& user, Micros now);
  // A place that was given to the user came to nothing.
  void owe_turn(User& user);
  // Nobody is owed one any more.
  void forget_owed_turns();
  // A place was taken for the user, who does without it.
  void note_forgone(User& user);
  // Ends the spans that are over.
  void end_spans(Micros now);
  std::optional<Micros> next_span_end() const { return spans_.next(); }
  // The number of the user who got the last grant; 0: there was none.
  uint32_t last_served() const { return last_served_ ? last_served_->record.number : 0; }
  // Applies (3.1) and (3.2) for all ticks since the last one, those missed while the server was
  // stopped included; decays `owed` as well. Returns the factors of what was in the usage, and of
  // the charges.
  struct Decay {
    double usage = 1;
    double charges = 1;
  };
  Decay decay(Micros since_last_tick);
  // Takes over a stored row; values that cannot be right are replaced. Returns a sentence
  // for each of those.
  std::vector<std::string> restore(const UserRecord& row, Micros now);
  // After the rows: gives a number of his own to each user who has none.
  void number_restored();

  // The user has jobs that wait or run, or has none any more.
  void begin_active(User& user);
  void end_active(User& user);
  // `cores` more, or fewer, are held by the user's attempts.
  void hold(User& user, int64_t cores);
  // User::attempts has changed.
  void note_attempts(User& user) { check_limit(user); }
  // The cores in use, divided among the active users in proportion to their shares.
  double due_to(const User& user) const;
  // For each user with waiting jobs or held cores: adds (guarantee - cores held) * time since the
  // last tick to `owed`. The guarantee is the fraction `floor` of the cores due to him, which are
  // all cores in use plus one, divided among the active users in proportion to their shares; 0
  // without waiting jobs. Does nothing for a user while no other user is active. Sets `guaranteed`
  // of those to whom something is owed, at least 1.
  void note_held(Micros since_last_tick, double floor);

  // ---- draws ----
  // When the user is drawn next, on a clock that stands at the last draw. The times between one
  // user's draws are distributed exponentially, so that at any time each user has the same chance
  // to be next. Smaller is earlier.
  double draw_of(const User& user) const;
  // He has jobs again: what he would have drawn meanwhile does not count.
  void begin_to_wait(User& user);
  // The same for all who wait: users are drawn from now on.
  void begin_draws();

  // ---- keys ----
  // The users whose keys (JobPolicy::key) may have changed since settle_moved.
  struct Moved {
    bool all = false;
    std::vector<User*> users;
  };
  void note_moved(User& user);
  const Moved& moved() const { return moved_; }
  void settle_moved();

  // Mutka's tables 4.3 and 4.5: the index of a user with attempts rises by their number,
  // that of a user with jobs and no attempt falls by 1 to 3, and that of others returns to 0.
  void update_indices();

  // The user lost a job or an attempt, and may not be worth knowing any more.
  void note_loss(User& user);
  void emit(Changes& changes);
  // Last in an apply: nobody may hold a user who is not worth knowing.
  void forget_spare();
  // After a restoration: only the users who were made by it, for whom no row was stored, are to be
  // stored with the next event, so that they keep their numbers.
  void end_restoration();

 private:
  void check_limit(User& user);
  void resume_span(User& user);
  void end_span(User& user);
  bool worth_knowing(const User& user) const;
  double guarantee_of(const User& user, double floor) const;
  double part_of(const User& user) const;
  void note_held(User& user, double wanted, double fair, double span);

  const Accounts accounts_;
  const double default_shares_;
  const Micros tick_;
  double k1_;
  uint64_t throttle_;
  Micros throttle_span_;
  uint64_t most_attempts_;
  Deadlines spans_;  // of the users with places in one
  std::map<std::string, User> users_;
  uint32_t last_number_ = 0;
  uint32_t last_restored_ = 0;  // last_number_ after number_restored()
  uint64_t last_grant_ = 0;
  User* last_served_ = nullptr;  // never forgotten
  // In units of 2^-20, so that what is added and taken away leaves no trace.
  int64_t active_shares_ = 0;
  uint64_t held_ = 0;
  double clock_ = 0;  // of the draws
  Touched<User> touched_;
  Moved moved_;
  std::vector<User*> perhaps_spare_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_LEDGER_H_
