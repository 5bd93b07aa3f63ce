// The implementation of Pool: its books, the matcher, and one handler for each event. A book
// owns what it names (books/*.h) and is changed only through its functions; what concerns
// several of them is done by the functions here. Private to the brain.
//
// The handlers are in events/, by subject; restore.cc rebuilds the books.
#ifndef SUBLET_SCHEDULING_STATE_H_
#define SUBLET_SCHEDULING_STATE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scheduling/books/attempt_book.h"
#include "scheduling/books/changes.h"
#include "scheduling/books/deadlines.h"
#include "scheduling/books/hours_book.h"
#include "scheduling/books/job_book.h"
#include "scheduling/books/ledger.h"
#include "scheduling/books/licence_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/books/program_book.h"
#include "scheduling/books/relation_book.h"
#include "scheduling/fair_share.h"
#include "scheduling/matching/matcher.h"
#include "scheduling/policies/policies.h"
#include "scheduling/pool.h"

namespace sublet::scheduling {

// A job refused this many times in a row backs off, for longer each time.
inline constexpr uint32_t kRefusalsAtOnce = 3;
// A job is held after this many attempts in a row that were in vain (rule 7).
inline constexpr uint32_t kMostInVain = 5;
// 1 s at the third refusal, doubling to 60 s.
Micros backoff_after(uint32_t refusals);

struct Pool::State {
  explicit State(const Parameters& parameters);

  // ---- events (see events.h) ----
  void on(const Submitted& event);
  void on(const BatchOpened& event);
  void on(const BatchReserved& event);
  void on(const RelationsBegun& event);
  void on(const JobsRemoved& event);
  void on(const JobsHeld& event);
  void on(const JobsReleased& event);
  void on(const PrioritySet& event);
  void on(const MachineJoined& event);
  void on(const MachineReported& event);
  void on(const MachineWithdrew& event);
  void on(const MachineDrained& event);
  void on(const MachineEvicted& event);
  void on(const Anchored& event);
  void on(const Renewed& event);
  void on(const OrderAnswered& event);
  void on(const AttemptStarted& event);
  void on(const CheckpointStored& event);
  void on(const CheckpointDamaged& event);
  void on(const AttemptEnded& event);
  void on(const SharesSet& event);
  void on(const PolicySet& event);
  void on(const Ticked& event);
  void on(const TimePassed& event);
  void on(const ServerStarted& event);

  // ---- jobs ----
  void remove(Job& job, const std::string& reason);
  // The job is to be held or removed, by its user's word: if another gives way to it, that was in
  // vain.
  void forgo(const Job& job);
  void control(const std::vector<JobRange>& ranges, const std::vector<JobState>& only_in,
               const std::function<bool(Job&)>& change);
  // All jobs that the relation names are in the job book; in a gated batch, which `begun` is of,
  // some may have been removed again, or have ended if they were another's. Returns how many
  // records of jobs were looked at.
  uint64_t begin_relation(Dependent& dependent, const RelationsBegun* begun = nullptr);
  // The jobs of the dependence for which it is yet to be met. Counts the records.
  uint64_t unmet(const Dependence& dependence, uint64_t& records);
  // In a gated batch: why the dependence can never be met; by 0: it can. Counts the records.
  LostDependence lost(const Dependence& dependence, const RelationsBegun& begun,
                      uint64_t& records) const;
  // Carries out what follows for jobs that wait for others from what happened in this apply.
  void settle_relations();
  void give_up(Job& job, const Dependent& dependent);
  // A job of a batch is done or has failed. `left`: the awaited output it produced. Removes
  // the rest of the batch if its stop condition now holds.
  void count_end(const Job& job, const std::string& left);

  // ---- attempts ----
  struct End {
    EndReason ended = EndReason::kNone;
    std::string reason;
    Micros cpu = 0;
    Micros cpu_saved = -1;
    Micros wall = 0;
    std::string left = {};
    bool started = false;  // its machine says so
    uint64_t memory_peak = 0;
    JobRange alike = {0, 0};      // AttemptEnded::alike
    bool machine_failed = false;  // OrderAnswered::machine_failed, and the job is not at fault
    Micros staging = 0;           // AttemptEnded::staging
    bool reported = false;        // by its machine
  };
  // `ahead_until`: as of AttemptBook::open.
  void place(Job& job, Machine& machine, Micros ahead_until = 0);
  // Gives places to waiting jobs until no waiting job fits an idle machine.
  void allocate();
  // ---- attempts ahead (events/ahead.cc) ----
  // After allocate(): where attempts have ended in this apply.
  void place_ahead();
  void place_ahead(Machine& machine);
  // It has waited for its place as long as it may: unless attempts go on ending before it, it is to
  // come back.
  void recall(Attempt& attempt);
  // All of the machine that have not begun.
  void recall_ahead(Machine& machine);
  // It has another number of places, or takes no more jobs.
  void settle_ahead(Machine& machine);
  // Has its machine give it back, unless it has begun.
  void call_back(Attempt& attempt);
  // Its machine says whether it waits there for a slot.
  void note_waiting(Attempt& attempt, bool waits);
  // An attempt has left its machine: another takes its place.
  void note_turn(const Attempt& ended, const End& end);

  void promise(Job& job, Machine& machine);
  // What the machine is promised for has changed, or is forgotten.
  void settle_promise(Machine& machine);
  // Takes places for users whose jobs wait, as the policy says. To be called when no waiting job
  // fits an idle machine.
  void preempt();
  void take_place(Attempt& attempt, Job& job, const std::string& why);
  Sentence why_first(const Job& job, const Machine& machine) const;
  Sentence why_ahead(const Job& job, const Machine& machine) const;
  void advance(Attempt& attempt, AttemptState state);
  void tell_to_leave(Attempt& attempt, LeaveReason reason);
  // `says_waits`: as in Renewed.
  Verdict renew(const Renewed::Status& status, MachineId machine, bool says_waits);
  // While the server is stopped nobody knows what happens: of such a time no more counts.
  Micros most_unseen() const { return 2 * parameters.tick; }
  void note_delivery(Attempt& attempt, uint64_t delivered);
  void note_use(Machine& machine, const std::vector<Renewed::Status>& statuses);
  void lose_unnamed(Machine& machine, const std::vector<Renewed::Status>& named);
  void expire(Attempt& attempt);
  void end_attempt(Attempt& attempt, const End& end);
  // What the end says of its machine.
  void judge_machine(const Attempt& attempt, const End& end);
  void return_job(Job& job, const Attempt& attempt, const End& end, const Cost& cost);
  // Its place came to nothing: its user, and the host in REQUESTING, have their turn again.
  void give_turn_back(Job& job);
  // Counts a consecutive refusal; from kRefusalsAtOnce on the job backs off. Returns
  // for how long; 0: it does not.
  Micros note_refusal(Job& job);
  void note_acceptance(Job& job);
  // The memory that an attempt was seen to use is asked for the next time.
  void note_growth(Job& job, const Attempt& attempt, const End& end);
  void note_growth_of_alike(const JobRange& alike, JobId grown, uint64_t memory);

  // ---- policies ----
  // Capacity has appeared: a machine's owner has left, or an attempt has ended. The up-down indices
  // are updated for it at the next poll, with whatever else appears before.
  void note_capacity();
  void update_indices();
  // Those of the choice are in force from now on: what waits is queued anew. `by`: as in the
  // record. O(n log n) in the number of waiting records, of which none changes.
  void switch_policies(const PolicyChoice& choice, const std::string& by);
  // The same without a record, for the stored one.
  void adopt(const PolicyRecord& stored);

  // REQUESTING in the order of the hosts' oldest waiting jobs.
  void order_requesting();
  // Adds the records of the apply and forgets what is not needed any more.
  void emit();

  Parameters parameters;  // with the policies in force
  PolicyRecord policy;
  Changes changes;
  Deadlines due;                 // attempts and machines: checked by TimePassed
  std::vector<Machine*> turned;  // on which attempts have ended in this apply
  Ledger ledger;
  ProgramBook programs;
  Policies policies;
  LicenceBook licences;
  HoursBook hours;
  Matcher matcher;
  AttemptBook attempts;
  RelationBook relations;
  JobBook jobs;
  MachineBook machines;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_STATE_H_
