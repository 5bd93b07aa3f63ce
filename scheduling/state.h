// The inside of Pool: its books and one handler for each event. Private to the
// brain. The handlers live by subject in events/; events/batch_stop.cc ends
// batches, allocation.cc places jobs, restore.cc rebuilds.
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
#include "scheduling/job_queue.h"
#include "scheduling/machine_queue.h"
#include "scheduling/pool.h"

namespace sublet::scheduling {

// A live attempt. A job has at most one; that of a removed job lives on, since
// it takes up its slot until it has ended.
struct Attempt : Timed {
  AttemptRecord record;
  Machine* machine = nullptr;
  Job* job = nullptr;    // null: the job was removed
  User* user = nullptr;  // null: not known (a damaged store)
  BatchId batch = 0;
  Micros receipt = 0;         // of the last renewal that counted; at first the decision
  uint32_t registration = 0;  // of the machine when this was decided
  bool touched = false;
};

// A batch that has a condition to stop, while it has live jobs.
struct Batch {
  BatchRecord record;
  std::set<JobId> jobs;  // the live ones' records
  bool touched = false;
};

// A job refused so many times in a row backs off, for longer each time.
inline constexpr uint32_t kRefusalsAtOnce = 3;
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
  // The job of this record id. Of an array that was not told apart yet that is
  // its first index; job_with finds any.
  Job* live_job(JobId id);
  const Job* live_job(JobId id) const;
  Job* job_with(JobId id);
  const Job* job_with(JobId id) const;
  // Tells the first `head` jobs of this record apart from the others, which are
  // returned.
  Job& split(Job& job, uint64_t head);
  // The live jobs among these, told apart from their neighbours.
  std::vector<Job*> split_out(const JobRange& range);
  User& user(const std::string& name);
  Group* group(const Requirements& needs);
  // Makes a job's books from its record; it is not queued yet.
  Job& adopt(JobRecord record);
  void set_state(Job& job, JobState state, EndReason ended = EndReason::kNone);
  // (3.4): raises the priority, drifted until now, by usage * active / shares^2.
  void raise_priority(Job& job);
  // Puts a waiting job in line unless its old attempt is still live or it backs off.
  void enqueue(Job& job);
  // Puts in line the jobs whose back-off is over.
  void end_backoffs();
  // Counts a refusal in a row; from kRefusalsAtOnce on the job backs off. Returns
  // for how long; 0: not.
  Micros note_refusal(Job& job);
  void note_acceptance(Job& job);
  void tell_to_leave(Attempt& attempt, LeaveReason reason);
  void remove(Job& job, const std::string& reason);
  void control(const std::vector<JobRange>& ranges, const std::vector<JobState>& only_in,
               const std::function<bool(Job&)>& change);
  void erase_final_jobs();
  // Those of whom nothing is left to know but the name; their rows stay stored.
  void forget_spare_users();

  // ---- batches ----
  // A job of the batch is done or has failed, and left this of what is awaited:
  // removes the rest when the condition holds.
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
  };
  Attempt* live_attempt(JobId id);
  // The live attempt of this key on this machine; null: it is not.
  Attempt* present(const AttemptKey& key, MachineId machine);
  void advance(Attempt& attempt, AttemptState state);
  void end_attempt(Attempt& attempt, const End& end);
  void return_job(Job& job, const Attempt& attempt, const End& end, const Cost& cost);
  void expire(Attempt& attempt);
  bool waited_long_enough(const Attempt& attempt) const;
  Verdict renew(const Renewed::Status& status, MachineId machine);
  // From when its job may go to another machine unless the lease is renewed.
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

  // ---- what one apply has changed ----
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
  DueHeap due;          // attempts and machines: looked at by TimePassed
  DueHeap backing_off;  // jobs that back off: looked at by every apply
  std::unordered_map<JobId, Job> jobs;
  std::map<JobId, Job*> arrays;  // those of `jobs` that stand for several
  std::unordered_map<BatchId, Batch> batches;
  std::unordered_map<JobId, Attempt> attempts;
  // Restored jobs whose newest attempt is not in the books: it may be live.
  std::vector<JobId> unaccounted;
  std::map<MachineId, Machine> machines;
  std::unordered_map<std::string, MachineId> machine_names;  // the newest of that name

  Outcome outcome;  // of the present apply
  std::vector<Job*> touched_jobs;
  std::vector<JobId> touched_attempts;
  std::vector<Machine*> touched_machines;
  std::vector<User*> touched_users;
  std::vector<Batch*> touched_batches;
  std::vector<User*> spare_users;  // perhaps
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_STATE_H_
