// The machine book: the workstations, what each reported last, and when each must be heard
// of again. It owns their records and states; whatever it changes of a machine, it keeps the
// queue IDLE in step (matching/machine_queue.h).
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_MACHINE_BOOK_H_
#define SUBLET_SCHEDULING_BOOKS_MACHINE_BOOK_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rules/named_amounts.h"
#include "scheduling/absences.h"
#include "scheduling/amounts.h"
#include "scheduling/books/changes.h"
#include "scheduling/books/deadlines.h"
#include "scheduling/events/events.h"
#include "scheduling/machine_limits.h"
#include "scheduling/matching/machine_queue.h"
#include "scheduling/parameters.h"

namespace sublet::scheduling {

struct Job;
struct MachineKind;
class Matcher;

struct Machine : Timed {
  MachineRecord record;
  // What most queries and decisions read stands together.
  MachineKind* kind = nullptr;
  bool away = false;  // the owner is away and jobs may run, by the last report
  bool silent = false;
  bool touched = false;
  bool rewritten = false;       // its record must be stored even if its state is unchanged
  bool owner_returned = false;  // his absences must be stored
  // He was seen there since the machine joined and was last silent: so when he leaves, it is known
  // when.
  bool owner_seen = false;
  uint64_t memory_free = 0;  // 0: not known
  uint64_t disk_free = 0;
  Micros paused_until = 0;  // after a refusal; 0: not paused
  uint64_t limit = 0;       // of jobs at a time, by the pool's word; 0: any number
  // Kept by the attempt book alone: the jobs of the live attempts on it, ascending, what those
  // have reserved, licences of the pool included, and how much memory and disk of that they use.
  std::vector<JobId> running;
  Amounts reserved;
  Amounts used;
  rules::NamedAmounts named_reserved;
  Job* promised_to = nullptr;  // for which it keeps room (matching/promises.h); null: for none
  IdlePlace place;
  Micros idle_since = 0;
  Micros away_since = 0;  // as far as is known; 0: the owner is not away
  Absences absences;
  SimilarAbsences similar;  // to the present one
  double load = 0;          // the average of the last minute, from the last report
  Micros last_contact = 0;
  uint32_t registration = 0;  // counts the joins
  Micros granted = 0;  // when a job was last placed here; 0: an attempt here has ended since then
  // Attempts beyond its slots, so that short ones follow each other without a pause
  // (events/ahead.cc).
  struct Ahead {
    uint32_t most = 0;        // MachineReported::ahead
    uint32_t held = 0;        // those of `running` without a place; kept by the attempt book alone
    uint32_t short_runs = 0;  // that ended one after the other, up to `most`
    Micros last_end = 0;      // of an attempt here
    uint64_t turns = 0;       // counts those placed ahead
  } ahead;
};

// What one job could have of the machine at present if there were no others: all its cores, and
// min(offered, reported as free + used by its jobs) of memory and disk (design, section 6). Only
// what they use of their reservations counts: the rest is promised to nobody.
Amounts lent_by(const Machine& machine);
// What is left of that for one more attempt, other than the one that the machine is promised to.
// There are as many cores as slots for all of them together, at least, because an owner may allow
// more slots than there are cores.
Amounts room_of(const Machine& machine);
// The same of all that it offers.
Space space_of(const Machine& machine);
// The same for any attempt, once others that have reserved so much have left.
Space space_without(const Machine& machine, const Amounts& leaving,
                    const rules::NamedAmounts& named_leaving);
// Whether the machine has what the job that it is promised to needs of it to start there now.
bool keeps_room(const Machine& machine);
// Whether this job could, once others have left: the owner is away, and nothing else is in its way.
bool may_make_room(const Machine& machine, const Job& job);
// Whether the owner is away, even if jobs may not run: the disk may be full.
inline bool is_owner_away(const Machine& machine) { return machine.away_since != 0; }
// It failed again and again, and gets no orders until its rest is over.
inline bool rests(const Machine& machine) { return machine.record.failures.rests_until != 0; }
// How many jobs it takes at a time: what its owner allows, or the pool if that is less.
uint64_t places_of(const Machine& machine);
// Whether it still has what its attempts have reserved: its owner's programs may have taken some.
bool is_within_offer(const Machine& machine);
// How many of these its attempts have; those ahead have none yet.
inline uint64_t places_taken(const Machine& m) { return m.running.size() - m.ahead.held; }
// The state that follows from the machine's other fields.
MachineState state_of(const Machine& machine);
inline bool is_gone(const Machine& machine) { return machine.record.state == MachineState::kGone; }

class MachineBook {
 public:
  MachineBook(const Parameters& parameters, Matcher& matcher, Deadlines& due, Changes& changes);

  // All that were ever known, by ascending ids.
  std::span<const Machine* const> all() const { return by_id_; }
  // Null: not known.
  Machine* find(MachineId id);
  const Machine* find(MachineId id) const;
  // The newest machine of that name.
  std::optional<MachineId> named(std::string_view name) const;

  // It registers, for the first time (machine 0 in the event) or again; busy until it
  // reports. Null: there is no such machine.
  Machine* join(const MachineJoined& event);
  void report(Machine& machine, const MachineReported& report);
  void withdraw(Machine& machine);
  // A machine that is resumed does not rest either, and its failures are forgotten. False: nothing
  // changed.
  bool drain(Machine& machine, bool drained);
  void note_contact(Machine& machine);
  // What it is promised for, or that it is promised no longer, has changed its room.
  void note_promise(Machine& machine);
  // It refused an order: it gets none for a while, unless it reports itself again.
  void pause(Machine& machine);
  // An attempt that was decided at that instant could not be started or was lost, through a fault
  // of the machine; or it has shown that the machine works. What was there already when the machine
  // last failed says nothing new: several attempts that fail together count once.
  void note_failure(Machine& machine, Micros decided, const std::string& reason);
  void note_success(Machine& machine, Micros decided);
  // A job of this user could not be started there. True: nor could jobs of several others, with no
  // success between: it is the machine's fault.
  bool note_unstarted(Machine& machine, const std::string& user);
  // An attempt began or ended on it (`freed`: it goes to the tail of IDLE).
  void note_slots(Machine& machine, bool freed);
  // Its deadline has been reached.
  void check(Machine& machine);
  // The server has started: there are no reports yet, so each is busy.
  void restart();
  // What the brain knew of the machine besides its record; it is not in IDLE afterwards.
  void anchor(Machine& machine, const Anchored::MachineNow& known);

  // Local time has changed.
  void note_local_time();

  // Takes over a stored row. False: its id is not valid.
  bool restore(const MachineRecord& row);
  // The same of a known machine. False: it is damaged.
  bool restore(const AbsenceRecord& row);
  // PolicyChoice::most_per_machine, from now on.
  void set_limits(const std::string& limits);
  // Adds the records of the machines whose state changed, or that must be stored anyway.
  void emit();

 private:
  // The machine of this id, made if necessary.
  Machine& enter(MachineId id);
  void note_owner(Machine& machine, bool away, bool owner_away);
  void find_similar_absences(Machine& machine);
  rules::LocalTime left_at(const Machine& machine) const;
  // Keeps IDLE in step, and what the machine is promised for.
  void requeue(Machine& machine, bool to_tail);
  void take_from_idle(Machine& machine);
  // Sets the next deadline: its silence, or the end of its pause or rest.
  void schedule(Machine& machine);
  Micros rest_after(uint32_t failures) const;
  void set_failures(Machine& machine, MachineFailures failures);

  const Micros lease_;
  const Micros refusal_pause_;
  const Micros rest_least_;
  const Micros rest_most_;
  MachineLimits limits_;
  Matcher& matcher_;
  Deadlines& due_;
  Changes& changes_;
  std::unordered_map<MachineId, Machine> machines_;
  // Ascending. To walk the nodes of a map would wait for one after the other.
  std::vector<Machine*> by_id_;
  std::unordered_map<std::string, MachineId> names_;  // the newest of that name
  Touched<Machine> touched_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_MACHINE_BOOK_H_
