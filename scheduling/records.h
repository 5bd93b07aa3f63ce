// The brain's output after an event: records (rows to store, each the complete
// new state of its subject), decisions (to carry out after the commit) and an
// answer for the caller.
#ifndef SUBLET_SCHEDULING_RECORDS_H_
#define SUBLET_SCHEDULING_RECORDS_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scheduling/parameters.h"
#include "scheduling/sentence.h"
#include "scheduling/types.h"

namespace sublet::scheduling {

// One job, or `count` jobs of a batch from `index` on that differ only by index (of
// an array or a list): consecutive ids, share priorities in equal steps.
struct JobRecord {
  JobId id = 0;  // of the first
  uint64_t count = 1;
  BatchId batch = 0;
  uint32_t index = 0;  // within the batch
  std::string user;
  SharedString submit_host;
  JobState state = JobState::kWaiting;
  uint32_t attempts = 0;  // made so far; only the newest may count
  Requirements needs;
  int32_t priority = 0;  // set by the user
  uint32_t retries_left = 0;
  uint32_t evictions = 0;
  uint32_t refusals = 0;  // orders refused or not delivered in a row
  // Fair-share priority (smaller is better): this value at this instant; it
  // drifts towards 0 with the configured half-life.
  double share_priority = 0;
  Micros share_priority_at = 0;
  double share_priority_step = 0;  // from one of the `count` jobs to the next
  uint64_t generation = 0;         // newest checkpoint that counts; 0 none
  uint64_t checkpoint_bytes = 0;
  Micros submitted = 0;
  Micros changed = 0;  // of the state
  Micros cpu_kept = 0;
  Micros cpu_lost = 0;
  std::string reason;        // one sentence: why it is waiting, or how it ended
  Micros not_before = 0;     // it backs off: not placed before this instant
  uint32_t vain = 0;         // attempts in a row that were in vain (Pool::State::was_in_vain)
  bool has_started = false;  // an attempt of it has run
  Micros earliest = 0;       // not started before this instant, by its user's word
  uint64_t program = 0;      // Submitted::Job::program
  bool operator==(const JobRecord&) const = default;
};

struct AttemptRecord {
  AttemptKey key;
  MachineId machine = 0;
  AttemptState state = AttemptState::kOrdered;
  EndReason ended = EndReason::kNone;
  Sentence reason;  // of the decision; once ended, of the end
  Micros decided = 0;
  Micros started = 0;
  Micros finished = 0;
  uint64_t resumed_generation = 0;  // of the job when this attempt was decided
  uint64_t generation = 0;          // newest stored by this attempt
  Micros cpu = 0;
  Micros cpu_lost = 0;
  // When it began to leave, or its delivery last made progress; 0: neither.
  Micros leaving_since = 0;
  Micros ready = 0;  // when its job became ready to run: submitted, returned or released
  // While it ran (JobPolicy::charges_while_running), and what of that is still in the user's
  // usage and charges: usage decays.
  Micros charged = 0;
  double charged_left = 0;
  JobId preempted_for = 0;   // the job that it gives way to; 0: to none
  Micros charged_new = 0;    // of `charged_left`, since the last tick: it has not decayed yet
  Micros charged_until = 0;  // the time before is charged
  bool operator==(const AttemptRecord&) const = default;
};

// If jobs of so many users in a row cannot be started on a machine, it is the machine's fault.
inline constexpr uint32_t kUsersAtFault = 3;

// Failures of a machine itself (Pool::State::judge_machine), without a success since.
struct MachineFailures {
  uint32_t count = 0;
  Micros last = 0;         // when it was last counted
  std::string reason;      // of the last one
  Micros rests_until = 0;  // it gets no orders before; 0: it does not rest
  // So many users in a row had a job that could not be started there, up to kUsersAtFault, and the
  // names of the first two.
  uint32_t unstarted = 0;
  std::string unstarted_first;
  std::string unstarted_second;
  bool operator==(const MachineFailures&) const = default;
};

struct MachineRecord {
  MachineId id = 0;
  std::string name;
  std::string os;
  std::string architecture;
  uint32_t cores = 1;
  uint32_t slots = 1;
  uint64_t memory = 0;
  uint64_t disk = 0;
  MachineState state = MachineState::kBusy;
  Micros state_since = 0;
  bool draining = false;       // takes no jobs, by an administrator's word
  std::string resources = {};  // that it offers besides: rules::NamedAmounts::text()
  MachineFailures failures = {};
  double speed = 0;  // of one of its cores, as its client measured it last; 0: not known
  bool operator==(const MachineRecord&) const = default;
};

// How long its owner stays away, as far as is known. Apart from the machine's record, which changes
// much more often.
struct AbsenceRecord {
  MachineId machine = 0;
  std::string absences;  // Absences::text()
  bool operator==(const AbsenceRecord&) const = default;
};

struct UserRecord {
  std::string name;
  double shares = 1;
  double usage = 0;    // decayed CPU seconds
  double charges = 0;  // CPU seconds since the last tick
  // An administrator has set the shares; the settings do not change them.
  bool by_administrator = false;
  uint32_t number = 0;  // in the order in which users were first seen; never reused
  // The number of the user's last grant, counted over all users; 0: none was recorded
  // (JobPolicy::wants_grants).
  uint64_t last_grant = 0;
  // Core-seconds by which the user fell short of his guarantee while others had jobs, too,
  // decayed; negative: he exceeded it (Ledger::note_held).
  double owed = 0;
  uint64_t guaranteed = 0;  // cores, until the next tick; 0: nothing is owed
  double drawn = 0;         // since when he draws (Ledger::draw_of)
  int64_t index = 0;        // of up-down; smaller is better (Ledger::update_indices)
  // The places given since this instant, when the first of them was given; 0: none in the present
  // span, or there is no throttle (Ledger::note_placed).
  uint64_t placed = 0;
  Micros placed_since = 0;
  // He has held or removed a job for which another had to give way: no place is taken for him until
  // he has got one.
  bool has_forgone = false;
  bool operator==(const UserRecord&) const = default;
};

// One use of a machine, recorded once, when an attempt ends. A checkpoint that is
// found damaged later changes only the job. used = kept + lost.
struct UseRecord {
  AttemptKey key;
  std::string user;
  MachineId machine = 0;
  BatchId batch = 0;
  EndReason ended = EndReason::kNone;
  Micros finished = 0;
  Micros wall = 0;
  Micros used = 0;
  Micros kept = 0;
  Micros lost = 0;
  Micros charged = 0;
  Micros started = 0;  // 0: it never ran
  // From when its job was ready to the start, or to the end if it never ran. So the
  // total wait of a job is the sum over its attempts.
  Micros waited = 0;
};

// A state change of `count` jobs from this one on, numbered in the order of the
// pool's history.
struct ChangeRecord {
  uint64_t number = 0;
  Micros at = 0;
  JobId job = 0;
  uint64_t count = 1;
  BatchId batch = 0;
  std::string user;
  JobState state = JobState::kWaiting;
  uint32_t attempt = 0;
  EndReason ended = EndReason::kNone;
};

// A batch with a stop condition, and the counts it depends on, or with a limit.
struct BatchRecord {
  BatchId id = 0;
  StopWhen stop_when;
  uint64_t done = 0;  // of its jobs
  uint64_t failed = 0;
  JobId stopped_by = 0;  // the job whose end stopped it; 0: it has not stopped
  uint64_t at_most = 0;  // of its jobs are on machines at a time; 0: any number
  uint64_t to_come = 0;  // of its jobs (Submitted::Piece)
  bool operator==(const BatchRecord&) const = default;
};

// Of jobs of a gated batch (Submitted::Piece).
enum class Gate : uint32_t {
  kOpen = 1,      // or their batch has none
  kEntering = 2,  // jobs are to come: what they wait for has not been looked at
  kClosed = 3,    // it has; but they are not queued yet, whatever they wait for
};

// Jobs that wait for others: the live ones of `jobs` have not been queued yet.
struct RelationRecord {
  JobRange jobs;  // of one batch
  OnNever on_never = OnNever::kHold;
  std::vector<Dependence> on;  // each of which must be met; some may be met already
  // They can never run because of this job (0: they can), which has failed, was removed, or
  // (kHeld) can never run either.
  JobId lost_by = 0;
  JobState lost_as = JobState::kFailed;
  bool over = false;  // they wait no longer, or are final: to be deleted
  Gate gate = Gate::kOpen;
  bool operator==(const RelationRecord&) const = default;
};

// The runs of a program on machines of one kind (books/program_book.h).
struct ProgramRecord {
  uint64_t program = 0;
  std::string architecture;
  int32_t speed = 0;  // of a core: 2^(speed / 8)
  uint64_t runs = 0;
  double log_cpu = 0;      // the mean of the natural logarithm of their CPU seconds
  Micros last = 0;         // when the newest ended
  bool forgotten = false;  // to be deleted
  bool operator==(const ProgramRecord&) const = default;
};

// Counters of the pool. Ids are never reused, even after rows are pruned.
struct PoolRecord {
  JobId next_job = 1;
  BatchId next_batch = 1;
  MachineId next_machine = 1;
  uint64_t next_change = 2;  // who follows the changes from the first asks for those after 1
  Micros last_tick = 0;
  Micros now = 0;          // the newest instant the brain has seen
  int32_t utc_offset = 0;  // of the server's local time, seconds east of UTC
  // When the up-down indices are updated for capacity that has appeared, if no tick comes before;
  // 0: none has appeared (Pool::State::note_capacity).
  Micros indices_due = 0;
  bool operator==(const PoolRecord&) const = default;
};

// The policies in force.
struct PolicyRecord {
  PolicyChoice choice;
  Micros since = 0;  // 0: not known
  std::string by;    // the administrator who has set them; "": the settings
  bool operator==(const PolicyRecord&) const = default;
};

// The k-th of the jobs that a record describes, 0 <= k < count.
JobRecord one_of(const JobRecord& record, uint64_t k);

using Record = std::variant<JobRecord, AttemptRecord, MachineRecord, UserRecord, UseRecord,
                            ChangeRecord, PoolRecord, BatchRecord, PolicyRecord, RelationRecord,
                            AbsenceRecord, ProgramRecord>;

// Everything needed to rebuild the brain. May be omitted:
// - final jobs, except those with a live attempt (removed, but not yet ended on its
//   machine): without its job such an attempt keeps its slot and is charged to no user;
// - batches without live jobs that have all come; relations that are over;
// - ended attempts, except the newest of each live job: without it the job waits as
//   long as a lease, since the attempt may still be running.
struct Snapshot {
  PoolRecord pool;
  std::vector<UserRecord> users;
  std::vector<MachineRecord> machines;
  std::vector<JobRecord> jobs;
  std::vector<AttemptRecord> attempts;
  std::vector<BatchRecord> batches;
  std::optional<PolicyRecord> policy = std::nullopt;  // none was stored: as the settings say
  std::vector<RelationRecord> relations;
  std::vector<AbsenceRecord> absences;
  std::vector<ProgramRecord> programs;
  // The highest ids in any row; counters never fall below them.
  JobId last_job = 0;
  BatchId last_batch = 0;
  MachineId last_machine = 0;
  uint64_t last_change = 0;
};

struct StartAttempt {
  AttemptKey key;
  MachineId machine = 0;
  uint64_t generation = 0;  // checkpoint to resume from; 0 none
  Micros decided = 0;
  std::string user = {};
  uint64_t checkpoint_bytes = 0;  // of that checkpoint
  bool ahead = false;             // beyond the machine's slots: it starts when one is free
};
struct TellToLeave {
  AttemptKey key;
  MachineId machine = 0;
  LeaveReason reason = LeaveReason::kRemoved;
};
using Decision = std::variant<StartAttempt, TellToLeave>;

struct Answer {
  JobId first_job = 0;    // Submitted, BatchReserved, RelationsBegun
  BatchId batch = 0;      // BatchOpened
  MachineId machine = 0;  // MachineJoined
  // JobsRemoved, JobsHeld, JobsReleased, PrioritySet; MachineDrained: 1 if it was otherwise
  // before; MachineEvicted: the attempts told to leave.
  uint64_t changed = 0;
  uint64_t unchanged = 0;  // JobsRemoved, JobsHeld, JobsReleased, PrioritySet
  std::vector<std::pair<AttemptKey, Verdict>> verdicts;  // Renewed, AttemptStarted, AttemptEnded
  // CheckpointStored: the attempt counts; SharesSet, PolicySet: valid; MachineJoined,
  // MachineDrained, MachineEvicted: machine known.
  bool accepted = true;
};

struct Outcome {
  std::vector<Record> records;
  std::vector<Decision> decisions;
  Answer answer;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_RECORDS_H_
