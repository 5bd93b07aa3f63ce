// Rebuilds the brain from its stored records. A row that contradicts the others is
// ignored and reported; the rest is used (rule 9).
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

using Complaints = std::vector<std::string>;

std::string name_of(const AttemptKey& key) {
  return "attempt " + std::to_string(key.job) + "." + std::to_string(key.attempt);
}
std::string name_of(JobId id) { return "job " + std::to_string(id); }
std::string name_of(const BatchRecord& row) { return "batch " + std::to_string(row.id); }

bool has_valid_charges(const AttemptRecord& row) {
  return row.charged >= 0 && row.charged_left <= static_cast<double>(row.charged) &&
         row.charged_new >= 0 && row.charged_until >= 0 &&
         static_cast<double>(row.charged_new) <= row.charged_left;
}

class Restorer {
 public:
  Restorer(Pool::State& state, Snapshot snapshot) : s_(state), rows_(std::move(snapshot)) {}

  Complaints run() {
    s_.changes.restore(rows_.pool, rows_.pool);
    if (rows_.policy) adopt(*rows_.policy);
    for (const UserRecord& row : rows_.users) add_user(row);
    s_.ledger.number_restored();
    for (const MachineRecord& row : rows_.machines) add_machine(row);
    for (const AbsenceRecord& row : rows_.absences)
      if (!s_.machines.restore(row))
        complain("what is known of the absences of machine " + std::to_string(row.machine) +
                 "'s owner is left out: it is damaged");
    for (const ProgramRecord& row : rows_.programs) add_program(row);
    for (const BatchRecord& row : rows_.batches) add_batch(row);
    const auto earlier = [](const JobRecord& a, const JobRecord& b) { return a.id < b.id; };
    if (!std::is_sorted(rows_.jobs.begin(), rows_.jobs.end(), earlier))
      std::sort(rows_.jobs.begin(), rows_.jobs.end(), earlier);
    s_.jobs.expect(rows_.jobs.size());
    for (RelationRecord& row : rows_.relations) add_relation(std::move(row));
    for (JobRecord& row : rows_.jobs) add_job(std::move(row));
    for (const AttemptRecord& row : rows_.attempts) add_attempt(row);
    settle_jobs();
    s_.jobs.forget_empty_batches();
    raise_counters();
    for (Dependent* dependent : dependents_)
      if (dependent->record.gate != Gate::kEntering) s_.begin_relation(*dependent);
    s_.order_requesting();
    s_.ledger.end_restoration();
    return std::move(complaints_);
  }

 private:
  void complain(std::string sentence) { complaints_.push_back(std::move(sentence)); }

  void adopt(const PolicyRecord& row) {
    if (const std::string problem = problem_with(row.choice); !problem.empty())
      return complain("the stored policies are left out: " + problem + "; the settings count");
    s_.adopt(row);
  }

  void add_user(const UserRecord& row) {
    for (std::string& sentence : s_.ledger.restore(row, rows_.pool.now))
      complain(std::move(sentence));
  }

  void add_machine(MachineRecord row) {
    if (!(row.speed >= 0) || !std::isfinite(row.speed)) {
      complain("machine " + std::to_string(row.id) + " had no valid speed: not known");
      row.speed = 0;
    }
    if (!s_.machines.restore(row))
      return complain("machine " + std::to_string(row.id) + " is left out: no valid id");
    last_machine_ = std::max(last_machine_, row.id);
  }

  void add_program(const ProgramRecord& row) {
    if (!s_.programs.restore(row))
      complain("runs of program " + std::to_string(row.program) + " are left out: no valid record");
  }

  // If the row is ignored, its jobs continue without the condition.
  void add_batch(const BatchRecord& row) {
    if (row.stopped_by != 0 && row.to_come == 0)
      return complain(name_of(row) + " is left out: it has stopped, yet has live jobs");
    if (!s_.jobs.restore(row)) complain(name_of(row) + " is left out: no valid id or condition");
  }

  // If the row is ignored, its jobs run without waiting for others.
  void add_relation(RelationRecord row) {
    const std::string name = "what job " + std::to_string(row.jobs.first) + " waits for";
    const JobId first = row.jobs.first;
    // It was stored with its jobs.
    const JobId next = std::max(rows_.pool.next_job, rows_.last_job + 1);
    if (first == 0 || first >= next || row.jobs.count - 1 > next - 1 - first || row.over)
      return complain(name + " is left out: no valid jobs");
    Dependent* dependent = s_.relations.add(std::move(row));
    if (dependent == nullptr) return complain(name + " is left out: it is there twice");
    dependents_.push_back(dependent);
  }

  // The counters must be above all ids, also of rows that are not in the snapshot. Raised
  // ones are stored with the next event.
  void raise_counters() {
    PoolRecord counters = rows_.pool;
    raise(counters.next_job, std::max(last_job_, rows_.last_job), "jobs");
    raise(counters.next_batch, std::max(last_batch_, rows_.last_batch), "batches");
    raise(counters.next_machine, std::max(last_machine_, rows_.last_machine), "machines");
    raise(counters.next_change, rows_.last_change, "changes");
    s_.changes.restore(rows_.pool, counters);
  }

  void raise(uint64_t& next, uint64_t last, const std::string& what) {
    if (last < next) return;
    complain("the counter of " + what + " was below " + std::to_string(last) + ": raised");
    next = last + 1;
  }

  void add_job(JobRecord row) {
    if (row.id == 0 || !is_known(row.state) || s_.jobs.all().contains(row.id)) {
      return complain(name_of(row.id) + " is left out: no valid id or state");
    }
    if (row.count == 0 || row.count - 1 > std::numeric_limits<JobId>::max() - row.id) {
      return complain(name_of(row.id) + " is left out: no valid count");
    }
    if (row.id <= last_job_ && s_.jobs.with(row.id) != nullptr) {
      return complain(name_of(row.id) + " is left out: an array has it already");
    }
    last_job_ = std::max(last_job_, row.id + row.count - 1);
    last_batch_ = std::max(last_batch_, row.batch);
    if (!(row.share_priority >= 0) || !std::isfinite(row.share_priority)) {
      complain(name_of(row.id) + " had no valid priority: 0 used");
      row.share_priority = 0;
    }
    if (!(row.share_priority_step >= 0) || !std::isfinite(row.share_priority_step)) {
      complain(name_of(row.id) + " had no valid step of priorities: 0 used");
      row.share_priority_step = 0;
    }
    if (is_final(row.state)) {
      final_jobs_[row.id] = std::move(row);  // needed only by its live attempt, if any
    } else {
      s_.jobs.adopt(std::move(row));
    }
  }

  void add_attempt(const AttemptRecord& row) {
    if (!is_known(row.state)) return complain(name_of(row.key) + " is left out: no valid state");
    Job* job = s_.jobs.live(row.key.job);
    if (job != nullptr && job->record.attempts != row.key.attempt) {
      if (row.state != AttemptState::kEnded) {
        complain(name_of(row.key) + " is left out: it is not the newest of its job");
      }
      return;
    }
    if (row.state == AttemptState::kEnded) {
      if (job == nullptr) return;
      job->last_end = row.ended;
      job->last_machine = row.machine;
      return;
    }
    Machine* m = s_.machines.find(row.machine);
    if (m == nullptr) return complain(name_of(row.key) + " is left out: its machine is not known");
    const JobRecord* record = job != nullptr ? &job->record : final_job(row.key.job);
    AttemptRecord valid = row;
    if (!has_valid_charges(row)) {
      complain(name_of(row.key) + " had no valid charges: 0 used");
      valid.charged = valid.charged_new = valid.charged_until = 0;
      valid.charged_left = 0;
    }
    if (!s_.attempts.restore(valid, *m, job, record))
      return complain(name_of(row.key) + " is left out: its job has another live one");
    if (record != nullptr) s_.jobs.note_begin(record->batch);
    if (record == nullptr)
      complain(name_of(row.key) +
               " continues, but its job is not stored: it is charged to no user");
  }

  const JobRecord* final_job(JobId id) const {
    const auto found = final_jobs_.find(id);
    return found == final_jobs_.end() ? nullptr : &found->second;
  }

  // A job recorded as placed or running must have an attempt; one without is set to
  // waiting, which is stored with its next change. If neither a live attempt nor the
  // end of the newest is recorded, the attempt may still be running.
  void settle_jobs() {
    for (const JobRecord& row : rows_.jobs) {
      Job* job = s_.jobs.live(row.id);
      if (job == nullptr) continue;
      const JobRecord& record = job->record;
      if (is_at_work(record.state) && s_.attempts.find(row.id) == nullptr) {
        complain(name_of(row.id) + " was at work without an attempt: it waits again");
        s_.jobs.wait_again(*job);
      }
      const bool accounted = record.attempts == 0 || s_.attempts.find(row.id) != nullptr ||
                             job->last_end != EndReason::kNone;
      if (!accounted) {  // ServerStarted, which follows, makes it wait for the lease
        s_.jobs.note_unaccounted(*job);
        continue;
      }
      if (record.state == JobState::kWaiting) s_.jobs.enqueue(*job);
    }
  }

  Pool::State& s_;
  Snapshot rows_;
  std::unordered_map<JobId, JobRecord> final_jobs_;
  std::vector<Dependent*> dependents_;
  JobId last_job_ = 0;
  BatchId last_batch_ = 0;
  MachineId last_machine_ = 0;
  Complaints complaints_;
};

}  // namespace

std::vector<std::string> Pool::restore(Snapshot snapshot) {
  return Restorer(*state_, std::move(snapshot)).run();
}

}  // namespace sublet::scheduling
