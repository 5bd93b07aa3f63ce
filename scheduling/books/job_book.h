// The job book: the live jobs, arrays among them, and the batches with a stop condition or limit.
// It owns their records and states, counts them for users and hosts, and tells the matcher which of
// them wait for a machine.
//
// Private to the brain; owned by Pool::State; one caller at a time.
#ifndef SUBLET_SCHEDULING_BOOKS_JOB_BOOK_H_
#define SUBLET_SCHEDULING_BOOKS_JOB_BOOK_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduling/books/changes.h"
#include "scheduling/books/deadlines.h"
#include "scheduling/books/ledger.h"
#include "scheduling/fair_share.h"
#include "scheduling/matching/job_line.h"
#include "scheduling/policies/policies.h"

namespace sublet::scheduling {

class AttemptBook;
class Matcher;
class RelationBook;
struct Demand;
struct Dependent;
struct Host;
struct Machine;
struct UserLine;

// A batch with a stop condition or a limit, while it has live jobs or some are to come.
struct Batch {
  BatchRecord record;
  uint64_t attempts = 0;  // live ones, including those of removed jobs
  std::set<JobId> jobs;   // record ids of the live ones
  bool touched = false;
};

// None of its jobs gets a place before one of its attempts has ended.
inline bool is_full(const Batch& batch) {
  return batch.record.at_most > 0 && batch.attempts >= batch.record.at_most;
}

// Its deadline is when it may be queued: JobRecord::not_before, or `earliest` if that is later.
struct Job : Timed {
  JobRecord record;
  User* user = nullptr;  // for whom it is counted: an account, or the submitter
  Host* host = nullptr;
  Demand* demand = nullptr;
  UserLine* line = nullptr;        // where it is queued; null: it is not queued
  Batch* batch = nullptr;          // null: its batch has no stop condition or limit
  Dependent* waits_for = nullptr;  // others; null: for none, or not any more
  Machine* promised = nullptr;     // kept for it (matching/promises.h); null: none
  // Where it would start once the licences that are kept for it have come back; null: none are
  // kept.
  Machine* licensed = nullptr;
  LinePlace place;
  MachineId last_machine = 0;             // of the newest attempt, once it has ended
  EndReason last_end = EndReason::kNone;  // how that attempt ended
  bool touched = false;
};

class JobBook {
 public:
  JobBook(const Parameters& parameters, Ledger& ledger, Matcher& matcher,
          const AttemptBook& attempts, RelationBook& relations, const Policies& policies,
          Changes& changes);

  // ---- finding jobs ----
  // In no particular order; those that became final in the current apply are among them.
  const std::unordered_map<JobId, Job>& all() const { return jobs_; }
  // Entries of all() with a count above 1, ascending.
  const std::map<JobId, Job*>& arrays() const { return arrays_; }
  // The job whose record has this id; an unsplit array is found by its first id only.
  // `with` finds any of its jobs. Null: not live.
  Job* live(JobId id);
  const Job* live(JobId id) const { return const_cast<JobBook*>(this)->live(id); }
  Job* with(JobId id);
  const Job* with(JobId id) const { return const_cast<JobBook*>(this)->with(id); }
  // Calls visit(job, part) for each live record that has jobs of the range: those of `part`.
  void each_live(const JobRange& range,
                 const std::function<void(const Job&, const JobRange&)>& visit) const;
  // The number of jobs in state waiting.
  uint64_t waiting() const { return waiting_; }
  const SharePriority& share_priority() const { return share_priority_; }

  // ---- adding and splitting ----
  // Room for so many more.
  void expect(size_t records) { jobs_.reserve(jobs_.size() + records); }
  // Adds a job from its record, without queuing it. If it waits for others, the relation book
  // knows that already.
  Job& adopt(JobRecord record);
  // Splits the record after its first `head` jobs; returns the others.
  Job& split(Job& job, uint64_t head);
  // The live jobs in the range; records that cross its ends are split.
  std::vector<Job*> split_out(const JobRange& range);

  // ---- changing ----
  // Every change of state; recorded. A waiting job leaves the queue; one that is to wait is
  // not queued yet.
  void set_state(Job& job, JobState state, EndReason ended = EndReason::kNone);
  // Queues a waiting job unless its old attempt is still live, it is backing off, its user lets it
  // start later only, or it waits for others.
  void enqueue(Job& job);
  // Queues the jobs whose back-off has ended, or that may start from now on.
  void end_waits();
  std::optional<Micros> next_end_of_wait() const { return not_yet_.next(); }
  // The job waits for others no longer.
  void make_ready(Job& job);
  // An attempt of the job runs.
  void note_started(Job& job);
  // (3.4): the job was submitted (or has just become ready), or returns unfinished.
  void note_submitted(Job& job);
  void note_returned(Job& job);
  // Other policies are in force, with these parameters: queues what waits anew.
  void follow(const Parameters& parameters);
  // The user's own priority, from now on. False: it was this already.
  bool set_priority(Job& job, int32_t priority);
  // It asks for at least this much memory from now on.
  void ask_memory(Job& job, uint64_t memory);
  void touch(Job& job) { touched_.add(job); }

  // ---- batches ----
  // `to_come`: BatchRecord.
  void open_batch(BatchId id, const StopWhen& stop_when, uint64_t at_most, uint64_t to_come = 0);
  // So many of its jobs are yet to come. Does nothing if it has no stop condition or limit.
  void note_to_come(BatchId id, uint64_t jobs);
  // An attempt of a job of this batch begins, or has ended; its user's lines are settled anew.
  void note_begin(BatchId id);
  void note_end(BatchId id);
  void touch(Batch& batch) { touched_batches_.add(batch); }

  // ---- restoring ----
  // Takes over a stored row whose jobs are added afterwards. False: no valid id or condition.
  bool restore(const BatchRecord& row);
  void forget_empty_batches();
  // The record says that the job is on a machine, but there is no attempt: it waits again. Not
  // recorded as a change, nor queued yet.
  void wait_again(Job& job);
  // Restored jobs whose newest attempt has no record, so that it may be live: after the next
  // start of the server they wait as long as a lease.
  void note_unaccounted(Job& job) { unaccounted_.push_back(job.record.id); }
  void hold_back_unaccounted(Micros delay);

  void emit();
  // Last in an apply: final jobs leave the book.
  void erase_final();

 private:
  // Counts the record's jobs in (or out) as being in that state.
  void count_in(const Job& job, JobState state);
  void count_out(const Job& job, JobState state, uint64_t count);
  // The job begins to wait for a machine, and may be its user's first.
  void begin_draws(const Job& job);
  void forget_batch_of(Job& job);

  Ledger& ledger_;
  Matcher& matcher_;
  const AttemptBook& attempts_;
  RelationBook& relations_;
  const Policies& policies_;
  SharePriority share_priority_;
  Changes& changes_;
  std::unordered_map<JobId, Job> jobs_;
  std::map<JobId, Job*> arrays_;
  std::unordered_map<BatchId, Batch> batches_;
  Deadlines not_yet_;
  uint64_t waiting_ = 0;
  std::vector<JobId> unaccounted_;
  Touched<Job> touched_;
  std::vector<Job*> final_;  // kept to save allocations
  Touched<Batch> touched_batches_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_BOOKS_JOB_BOOK_H_
