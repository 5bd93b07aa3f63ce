// The attempt book: the live attempts, of which a job has at most one, and when the lease of
// each runs out. It owns their records, the list of attempts on each machine, and the count
// of each user's. The attempt of a removed job stays live until it ends, because it occupies
// its slot.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_ATTEMPT_BOOK_H_
#define SUBLET_SCHEDULING_BOOKS_ATTEMPT_BOOK_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "scheduling/books/changes.h"
#include "scheduling/books/deadlines.h"
#include "scheduling/books/ledger.h"
#include "scheduling/books/licence_book.h"
#include "scheduling/events/events.h"
#include "scheduling/parameters.h"

namespace sublet::scheduling {

struct Job;
struct Machine;

struct Attempt : Timed {
  AttemptRecord record;
  Machine* machine = nullptr;
  Job* job = nullptr;     // null: the job was removed
  User* user = nullptr;   // whom it counts for, as Job::user; null: not known (a damaged store)
  std::string submitter;  // JobRecord::user, also of a removed job; "": not known
  BatchId batch = 0;
  Micros receipt = 0;         // of the last renewal that counted; initially the decision
  uint32_t registration = 0;  // of the machine when the attempt was decided
  uint64_t delivered = 0;     // as last reported; 0 after a restart of the server
  // By its machine when it was decided; 0 after a restart of the server: not known.
  uint64_t memory_offered = 0;
  Amounts reserved = {1, 0, 0};
  rules::NamedAmounts named;  // reserved besides, of its machine or the pool's licences
  Amounts used;  // of memory and disk that it has reserved, as last reported; 0 after a restart
  // It has no place of its machine yet, and reserves nothing there: it will have one of those that
  // end before it (events/ahead.cc).
  bool ahead = false;
  Micros ahead_until = 0;     // how long it may wait for that; 0: it has begun, or is to leave
  Micros called_back = 0;     // when it was first; 0: it was not, or has begun
  bool placed_ahead = false;  // it was so at first
  uint64_t turn = 0;          // of those placed ahead on its machine
  bool touched = false;
};

class AttemptBook {
 public:
  AttemptBook(const Parameters& parameters, Ledger& ledger, LicenceBook& licences, Deadlines& due,
              Changes& changes);

  // In no particular order.
  const std::unordered_map<JobId, Attempt>& all() const { return attempts_; }
  // The job's; null: it has none.
  Attempt* find(JobId id);
  const Attempt* find(JobId id) const;
  // The live attempt with this key on this machine; null: there is none.
  Attempt* present(const AttemptKey& key, MachineId machine);

  // The job's next attempt begins on this machine; its first lease starts now. `ahead_until`: see
  // Attempt; 0: it has its place at once.
  Attempt& open(Job& job, Machine& machine, Sentence reason, Micros ahead_until = 0);
  // Attempts ahead get what places the machine has. Each may wait there for ahead_wait: until it
  // has begun, it is not known whether it was its turn.
  void take_places(Machine& machine);
  // It may wait so long for its place; 0: it does not wait any more.
  void wait_ahead(Attempt& attempt, Micros until);
  // Its machine is to give it back. If nothing comes of that, it is due again after a lease.
  void call_back(Attempt& attempt);
  // It was called back, and its machine has had the time to start it or to give it back.
  bool is_overdue(const Attempt& attempt) const;
  // It has ended: it is taken out of the book, and its record is the caller's to add.
  Attempt close(Attempt& attempt);
  // It is to leave for this job. `why` is its record's reason from now on.
  void give_up(Attempt& attempt, JobId job, std::string why);
  // It uses so much memory and disk now. False: that changes nothing.
  bool note_use(Attempt& attempt, const Amounts& used);
  // Its lease is renewed now.
  void renew(Attempt& attempt);
  // When its job may be placed on another machine unless the lease is renewed (rule 3).
  Micros reassign_at(const Attempt& attempt) const;
  // It was to leave or to deliver, and nothing has come for longer than is waited for.
  bool waited_long_enough(const Attempt& attempt) const;
  // The server has started: every lease is counted from now.
  void restart();
  // What the brain knew of the attempt besides its record.
  void anchor(Attempt& attempt, const Anchored::AttemptNow& known);

  // Charges the attempt, which runs, for its core time since it was charged last, but for `most`
  // of that time at most.
  void charge_running(Attempt& attempt, Micros most);
  // What was charged while attempts ran decays, as usage does.
  void decay(const Ledger::Decay& kept);
  // Charges an attempt that has ended with `cost`, less what it was charged while it ran.
  void settle(Attempt& ended, Micros cost);

  // Takes over the stored row of a live attempt. False: its job has another one. `of`: the job's
  // record; null: it is not known whose it is. `job` null: the job is not live.
  bool restore(const AttemptRecord& row, Machine& machine, Job* job, const JobRecord* of);

  void touch(Attempt& attempt);
  void emit();

 private:
  // It is on its machine, or not any more.
  void occupy(Attempt& attempt);
  void vacate(Attempt& attempt);
  // Its place, and what it reserves, are its own, or free again.
  void reserve(Attempt& attempt);
  void release(Attempt& attempt);
  void set_ahead(Attempt& attempt, bool ahead);
  void restore_places(const Machine& machine);
  std::vector<Attempt*> in_turn(const Machine& machine);
  void schedule(Attempt& attempt);
  void belong(Attempt& attempt, User& user);

  const Micros lease_;
  const Micros leaving_wait_;
  const Micros ahead_wait_;
  const Micros ahead_return_;
  Ledger& ledger_;
  LicenceBook& licences_;
  Deadlines& due_;
  Changes& changes_;
  std::unordered_map<JobId, Attempt> attempts_;
  std::vector<JobId> touched_;  // by id, because an attempt may end before it is emitted
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_ATTEMPT_BOOK_H_
