// The implementation of Pool: its state and one handler for each event. Private
// to the brain. The handlers are in events/, by subject; events/batch_stop.cc stops
// batches, matching/allocation.cc places jobs, restore.cc rebuilds the state.
#ifndef SUBLET_SCHEDULING_STATE_H_
#define SUBLET_SCHEDULING_STATE_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduling/fair_share.h"
#include "scheduling/matching/job_queue.h"
#include "scheduling/matching/machine_queue.h"
#include "scheduling/pool.h"

namespace sublet::scheduling {

// A live attempt. A job has at most one. The attempt of a removed job stays live
// until it ends, because it occupies its slot.
struct Attempt : Timed {
  AttemptRecord record;
  Machine* machine = nullptr;
  Job* job = nullptr;    // null: the job was removed
  User* user = nullptr;  // null: not known (a damaged store)
  BatchId batch = 0;
  Micros receipt = 0;         // of the last renewal that counted; initially the decision
  uint32_t registration = 0;  // of the machine when the attempt was decided
  uint64_t delivered = 0;     // as last reported; 0 after a restart of the server
  // By its machine when it was decided; 0 after a restart of the server: not known.
  uint64_t memory_offered = 0;
  bool touched = false;
};

// A batch with a stop condition, while it has live jobs.
struct Batch {
  BatchRecord record;
  std::set<JobId> jobs;  // record ids of the live ones
  bool touched = false;
};

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
  void on(const JobsRemoved& event);
  void on(const JobsHeld& event);
  void on(const JobsReleased& event);
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
  void on(const Ticked& event);
  void on(const TimePassed& event);
  void on(const ServerStarted& event);

  // ---- jobs ----
  // The job whose record has this id; an unsplit array is found by its first id
  // only. job_with finds any of its jobs.
  Job* live_job(JobId id);
  const Job* live_job(JobId id) const;
  Job* job_with(JobId id);
  const Job* job_with(JobId id) const;
  // Splits the record after its first `head` jobs; returns the others.
  Job& split(Job& job, uint64_t head);
  // The live jobs in the range; records that cross its ends are split.
  std::vector<Job*> split_out(const JobRange& range);
  User& user(const std::string& name);
  Group* group(const Requirements& needs);
  // Adds a job from its record, without queuing it.
  Job& adopt(JobRecord record);
  void set_state(Job& job, JobState state, EndReason ended = EndReason::kNone);
  // (3.4): raises the priority, drifted until now, by usage * active / shares^2.
  void raise_priority(Job& job);
  // Queues a waiting job unless its old attempt is still live or it is backing off.
  void enqueue(Job& job);
  // Queues the jobs whose back-off has ended.
  void end_backoffs();
  // Counts a consecutive refusal; from kRefusalsAtOnce on the job backs off. Returns
  // for how long; 0: it does not.
  Micros note_refusal(Job& job);
  void note_acceptance(Job& job);
  void note_delivery(Attempt& attempt, uint64_t delivered);
  void tell_to_leave(Attempt& attempt, LeaveReason reason);
  // Why an attempt that has been told so must leave.
  static LeaveReason reason_to_leave(const Attempt& attempt);
  void remove(Job& job, const std::string& reason);
  void control(const std::vector<JobRange>& ranges, const std::vector<JobState>& only_in,
               const std::function<bool(Job&)>& change);
  void erase_final_jobs();
  // Forgets groups without live jobs: after the allocation, which may still look at them.
  void forget_spare_groups();
  // Drops users without jobs, attempts, usage or their own shares; their rows stay stored.
  void forget_spare_users();

  // ---- batches ----
  // A job of the batch is done or has failed. `left`: the awaited output it produced.
  // Removes the rest of the batch if its stop condition now holds.
  void count_end(const Job& job, const std::string& left);
  void forget_batch(Job& job);

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
    JobRange alike = {0, 0};  // AttemptEnded::alike
  };
  Attempt* live_attempt(JobId id);
  // The live attempt with this key on this machine; null: there is none.
  Attempt* present(const AttemptKey& key, MachineId machine);
  void advance(Attempt& attempt, AttemptState state);
  void end_attempt(Attempt& attempt, const End& end);
  std::optional<bool> was_in_vain(const Attempt& attempt, const End& end) const;
  void return_job(Job& job, const Attempt& attempt, const End& end, const Cost& cost);
  // The memory that an attempt was seen to use is asked for the next time.
  void note_growth(Job& job, const Attempt& attempt, const End& end);
  void note_growth_of_alike(const JobRange& alike, JobId grown, uint64_t memory);
  void ask_memory(Job& job, uint64_t memory);
  void expire(Attempt& attempt);
  bool waited_long_enough(const Attempt& attempt) const;
  Verdict renew(const Renewed::Status& status, MachineId machine);
  // When its job may be placed on another machine unless the lease is renewed.
  Micros reassign_at(const Attempt& attempt) const;

  // ---- machines ----
  Machine* machine(MachineId id);
  const Machine* machine(MachineId id) const;
  void note_contact(Machine& machine);
  void schedule(Machine& machine);
  void lose_unnamed(Machine& machine, const std::vector<Renewed::Status>& named);

  // ---- allocation ----
  void allocate();
  std::vector<MachineClass*> kinds_for_newly_queued();
  Machine* next_to_serve(uint64_t after, const std::vector<MachineClass*>& kinds);
  void place(Job& job, Machine& machine);
  std::string why_first(const Job& job, const Machine& machine) const;

  // ---- changes made by one apply ----
  void touch(Job& job);
  void touch(Attempt& attempt);
  void touch(Machine& machine);
  void touch(User& user);
  void touch(Batch& batch);
  void emit();

  // REQUESTING in the order of the hosts' oldest waiting jobs.
  void order_requesting();

  Parameters parameters;
  double k1;
  Drift drift;
  Micros now = 0;
  PoolRecord pool;
  PoolRecord stored_pool;  // as last emitted
  uint64_t waiting = 0;

  std::map<std::string, User> users;
  uint32_t last_user_index = 0;
  JobQueue queue;
  MachineQueue idle;
  DueHeap due;          // attempts and machines: checked by TimePassed
  DueHeap backing_off;  // jobs that back off: checked by every apply
  std::unordered_map<JobId, Job> jobs;
  std::map<JobId, Job*> arrays;  // entries of `jobs` with a count above 1
  std::unordered_map<BatchId, Batch> batches;
  std::unordered_map<JobId, Attempt> attempts;
  // Restored jobs whose newest attempt has no record: it may be live.
  std::vector<JobId> unaccounted;
  std::map<MachineId, Machine> machines;
  std::unordered_map<std::string, MachineId> machine_names;  // the newest of that name

  Outcome outcome;  // of the current apply
  std::vector<Job*> touched_jobs;
  std::vector<JobId> touched_attempts;
  std::vector<Machine*> touched_machines;
  std::vector<User*> touched_users;
  std::vector<Batch*> touched_batches;
  std::vector<User*> spare_users;    // candidates for forget_spare_users
  std::vector<Group*> spare_groups;  // for forget_spare_groups
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_STATE_H_
