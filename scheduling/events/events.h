// Events: the brain's only input. The server stores every event with the records it
// caused, so that history can be replayed.
#ifndef SUBLET_SCHEDULING_EVENTS_EVENTS_H_
#define SUBLET_SCHEDULING_EVENTS_EVENTS_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scheduling/parameters.h"
#include "scheduling/types.h"

namespace sublet::scheduling {

// Jobs of one committed batch, accepted together, or one piece of a batch that was reserved
// (BatchReserved). Ids are assigned in order.
struct Submitted {
  // `count` jobs that differ only by index: an array, or consecutive jobs whose
  // descriptions do not differ for the brain.
  struct Job {
    Requirements needs;
    int32_t priority = 0;  // among the user's own jobs: higher runs earlier
    uint32_t retries = 0;
    uint64_t count = 1;
    // What all of them wait for: live jobs, or jobs of this event, whose ids the caller knows
    // from PoolRecord::next_job. What is not live counts as met, but in a gated piece: see
    // RelationsBegun. No cycles.
    std::vector<Dependence> after = {};
    Micros earliest = 0;  // not started before this instant; 0: at any time
    // What it runs: the same number for jobs that run the same program; 0: not known.
    uint64_t program = 0;
    bool operator==(const Job&) const = default;
  };
  // Where a piece belongs, which the caller knows from Answer::first_job. Pieces come in order. A
  // batch whose jobs wait for others is gated: none of its jobs is queued before all have
  // come, and RelationsBegun says so.
  struct Piece {
    JobId first = 0;       // of its jobs; 0: this is a whole batch
    uint32_t index = 0;    // of that job in the batch
    uint64_t to_come = 0;  // jobs of the batch after this piece
    bool gated = false;
    bool operator==(const Piece&) const = default;
  };
  BatchId batch = 0;  // from an earlier BatchOpened
  std::string user;
  std::string submit_host;
  std::vector<Job> jobs;
  StopWhen stop_when = {};
  OnNever on_never = OnNever::kHold;
  uint64_t at_most = 0;  // of these jobs are on machines at a time; 0: any number
  Piece piece = {};      // of a piece, stop_when and at_most are in BatchReserved
};
// From here on the batch will have all its jobs: their ids are taken, and the jobs come in pieces,
// each a Submitted. If the batch stops meanwhile, what is still to come is removed as it comes.
struct BatchReserved {
  BatchId batch = 0;  // from an earlier BatchOpened
  uint64_t count = 0;
  StopWhen stop_when = {};
  uint64_t at_most = 0;
};
// Because of this job the dependence can never be met.
struct LostDependence {
  Dependence dependence;
  JobId by = 0;
  JobState as = JobState::kRemoved;
  bool operator==(const LostDependence&) const = default;
};
// All jobs of a gated batch have come: `jobs` is what is left of it. First, until there are no
// more, they begin to wait for what they wait for; whoever was removed before counts as removed
// afterwards. Then, with `opens`, those that wait for nothing any more are queued. About `most`
// entries and dependences are looked at, and a hundred times as many of the jobs waited for;
// Answer::first_job tells where the next event goes on, 0: there are no more. Repeats change
// nothing.
struct RelationsBegun {
  JobRange jobs;
  bool opens = false;
  uint64_t most = 1;
  // The batch's first job; jobs before it belong to other batches. `lost`: of the dependences that
  // Pool::unclear() names, those that can never be met.
  JobId first = 0;
  std::vector<LostDependence> lost = {};
};
// Reserves a batch id.
struct BatchOpened {
  std::string user;
};
// A workstation registered, for the first time (machine 0) or again. Attempts ordered
// in an earlier registration and not named by the first Renewed of this one are lost.
struct MachineJoined {
  MachineId machine = 0;
  std::string name;
  std::string os;
  std::string architecture;
  uint32_t cores = 1;
  uint32_t slots = 1;
  uint64_t memory = 0;
  uint64_t disk = 0;
  std::string resources = {};  // that it offers besides: rules::NamedAmounts::text()
};
// A workstation reported its state (on every change and with each renewal).
struct MachineReported {
  MachineId machine = 0;
  bool away = false;  // the owner is away: jobs may run
  uint64_t memory_free = 0;
  uint64_t disk_free = 0;
  double speed = 0;         // MachineRecord::speed; 0: it did not say
  double load = 0;          // the load average of the last minute; 0 also: it did not say
  bool owner_away = false;  // jobs may not run, but the owner is away
  uint32_t ahead = 0;       // orders that it takes ahead of time, beyond its slots
};
struct MachineWithdrew {
  MachineId machine = 0;
};
// The client renewed the leases of the attempts it holds. The answer has a verdict for
// each. `first`: the first of this registration; attempts that it does not name are
// lost.
struct Renewed {
  struct Status {
    AttemptKey key;
    AttemptState state = AttemptState::kRunning;
    uint64_t delivered = 0;  // kDelivering: changes while it makes progress
    uint64_t memory = 0;     // bytes in use
    uint64_t disk = 0;       // the same; only with a report
    bool waits = false;      // it has no slot there yet; only with `says_waits`
  };
  MachineId machine = 0;
  bool first = false;
  std::vector<Status> attempts;
  // What the machine reported with it: what its jobs use and what is free belong together.
  std::optional<MachineReported> report = {};
  bool says_waits = false;  // its client says which attempts wait; only with a report
};
// The workstation's answer to an order to run. kUnknown: the call failed and may or
// may not have been carried out; the lease decides.
struct OrderAnswered {
  enum class Answer : uint32_t { kAccepted, kRefused, kUnknown, kNotDelivered };
  AttemptKey key;
  Answer answer = Answer::kAccepted;
  std::string reason;
  bool machine_failed = false;  // not accepted through a fault of the machine, not of the job
};
struct AttemptStarted {
  AttemptKey key;
  MachineId machine = 0;  // the reporting machine
  Micros ran = 0;         // for how long it had been running
};
struct CheckpointStored {
  AttemptKey key;
  MachineId machine = 0;
  uint64_t generation = 0;
  uint64_t bytes = 0;
};
struct AttemptEnded {
  AttemptKey key;
  MachineId machine = 0;
  EndReason ended = EndReason::kNone;
  std::string reason;
  Micros cpu = 0;         // used
  Micros cpu_saved = -1;  // part of it up to the newest checkpoint; -1: no checkpoint
  Micros wall = 0;
  std::string left = {};     // done: the file it produced for StopWhen::output; "": none
  bool started = false;      // its program was started
  uint64_t memory_peak = 0;  // bytes that it was seen to use at most; 0: not known
  // It left because its machine's memory ran short: the jobs with its description, itself
  // included, which will need as much. count 0: it did not.
  JobRange alike = {0, 0};
  Micros staging = 0;  // with its slot, before its program was started; 0: not known
};
// Jobs are named by id; the caller has checked the permissions. `only_in`: only those
// in one of these states; empty: any state. `by`: the user who requested it.
struct JobsRemoved {
  std::vector<JobRange> jobs;
  std::vector<JobState> only_in = {};
  std::string by = {};
};
struct JobsHeld {
  std::vector<JobRange> jobs;
  std::vector<JobState> only_in = {};
  std::string by = {};
  std::string reason = {};  // for display; empty: a default sentence that names `by`
};
struct JobsReleased {
  std::vector<JobRange> jobs;
  std::vector<JobState> only_in = {};
};
// A user's shares. Those from the settings do not count while an administrator has set
// others.
struct SharesSet {
  enum class By : uint32_t {
    kSettings,
    kAdministrator,
    kGivenBack,  // an administrator gave them back to the settings, which say `shares`
  };
  std::string user;
  double shares = 1;
  By by = By::kSettings;
};
// An administrator drains the machine: it takes no more jobs, whatever joins or restarts,
// until it is resumed (`drained` false). A resumed machine does not rest any more either.
struct MachineDrained {
  MachineId machine = 0;
  bool drained = true;
};
// An administrator evicts the jobs of the machine: each saves and leaves, unless it has ended
// and delivers.
struct MachineEvicted {
  MachineId machine = 0;
};
// The Alarm Sender's tick: usage decays (formulas 3.1 and 3.2 of the source).
struct Ticked {
  int32_t utc_offset = 0;  // of the server's local time now, seconds east of UTC
};
// Time has passed: expired leases, silent machines and waits are handled. Due at
// Pool::next_deadline().
struct TimePassed {};
// The server process started with this state: every live lease is counted from now.
// `parameters`: the settings. Their policies take over from those of earlier settings, but not
// from those that an administrator has set; the others are what the brain was made with.
struct ServerStarted {
  std::optional<Parameters> parameters = std::nullopt;
  int32_t utc_offset = 0;  // as of Ticked; stored only with parameters
};
// A live attempt requested its job's checkpoint and the checkpoint turned out to be
// damaged: the job resumes from an older generation (rule 9).
struct CheckpointDamaged {
  AttemptKey key;
  MachineId machine = 0;
  uint64_t generation = 0;  // the damaged one
  uint64_t usable = 0;      // the newest intact one; 0: none
  uint64_t bytes = 0;       // of it
};

// The user's own priority of jobs that have not ended, from now on. `only_in`: as above.
struct PrioritySet {
  std::vector<JobRange> jobs;
  int32_t priority = 0;
  std::vector<JobState> only_in = {};
};

// An administrator switches policies, or their parameters; nothing else changes. They stay until
// they are set again, or given back to the settings, whatever the settings of a later start.
struct PolicySet {
  PolicyChoice choice = {};  // if they are given back, what the settings say
  std::string by = {};       // the administrator; "": they are given back
};

// What the brain knows besides its records (Pool::anchor). With it, a brain that was restored
// from the records stored at this instant goes on exactly like the one that wrote it, in which
// it changes nothing. A file of history begins with such records and this event, or with
// ServerStarted.
struct Anchored {
  struct MachineNow {
    MachineId machine = 0;
    bool away = false;
    bool silent = false;
    uint64_t memory_free = 0;
    uint64_t disk_free = 0;
    Micros last_contact = 0;
    Micros paused_until = 0;
    uint32_t registration = 0;
    Micros away_since = 0;
    JobId promised = 0;       // the job for which it keeps room; 0: none
    bool owner_seen = false;  // there, since it joined and was last heard of again
    double load = 0;
    Micros granted = 0;
    uint32_t ahead_most = 0;  // MachineReported::ahead
    uint32_t short_runs = 0;  // Machine::Ahead
    Micros last_end = 0;
    uint64_t turns = 0;
  };
  struct Idle {
    MachineId machine = 0;
    Micros since = 0;
  };
  struct AttemptNow {
    JobId job = 0;
    Micros receipt = 0;
    uint32_t registration = 0;
    uint64_t delivered = 0;
    uint64_t memory_offered = 0;
    uint64_t memory_used = 0;
    uint64_t disk_used = 0;
    bool ahead = false;  // Attempt
    Micros ahead_until = 0;
    bool placed_ahead = false;
    uint64_t turn = 0;
    Micros called_back = 0;
  };
  // A job that licences are kept for, and where it would start.
  struct Licensed {
    JobId job = 0;
    MachineId machine = 0;
  };
  Parameters parameters = {};
  std::vector<MachineNow> machines;     // ascending
  std::vector<Idle> idle;               // IDLE, head first
  std::vector<AttemptNow> attempts;     // the live ones, ascending
  std::vector<std::string> requesting;  // hosts, head first
  std::vector<Licensed> licensed = {};  // ascending
  std::vector<std::string> owed = {};   // a turn (User::turn_owed), ascending
};

// Stored by their index in this list: only append to it.
using Event = std::variant<Submitted, BatchOpened, MachineJoined, MachineReported, MachineWithdrew,
                           Renewed, OrderAnswered, AttemptStarted, CheckpointStored, AttemptEnded,
                           JobsRemoved, JobsHeld, JobsReleased, SharesSet, Ticked, TimePassed,
                           ServerStarted, CheckpointDamaged, MachineDrained, MachineEvicted,
                           Anchored, PrioritySet, PolicySet, BatchReserved, RelationsBegun>;

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_EVENTS_EVENTS_H_
