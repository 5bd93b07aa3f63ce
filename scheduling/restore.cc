// Rebuilds the brain from its stored records. A row that contradicts the others is
// ignored and reported; the rest is used (rule 9).
#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

using Complaints = std::vector<std::string>;

std::string name_of(const AttemptKey& key) {
  return "attempt " + std::to_string(key.job) + "." + std::to_string(key.attempt);
}
std::string name_of(JobId id) { return "job " + std::to_string(id); }
std::string name_of(const BatchRecord& row) { return "batch " + std::to_string(row.id); }

class Restorer {
 public:
  Restorer(Pool::State& state, Snapshot snapshot) : s_(state), rows_(std::move(snapshot)) {}

  Complaints run() {
    s_.pool = rows_.pool;
    s_.now = s_.pool.now = std::max<Micros>(s_.pool.now, 1);
    for (const UserRecord& row : rows_.users) add_user(row);
    for (const MachineRecord& row : rows_.machines) add_machine(row);
    for (const BatchRecord& row : rows_.batches) add_batch(row);
    const auto earlier = [](const JobRecord& a, const JobRecord& b) { return a.id < b.id; };
    if (!std::is_sorted(rows_.jobs.begin(), rows_.jobs.end(), earlier))
      std::sort(rows_.jobs.begin(), rows_.jobs.end(), earlier);
    s_.jobs.reserve(rows_.jobs.size());
    for (JobRecord& row : rows_.jobs) add_job(std::move(row));
    for (const AttemptRecord& row : rows_.attempts) add_attempt(row);
    settle_jobs();
    std::erase_if(s_.batches, [](const auto& batch) { return batch.second.jobs.empty(); });
    // Rows that are not in the snapshot have ids too.
    last_job_ = std::max(last_job_, rows_.last_job);
    last_batch_ = std::max(last_batch_, rows_.last_batch);
    last_machine_ = std::max(last_machine_, rows_.last_machine);
    raise(s_.pool.next_job, last_job_, "jobs");
    raise(s_.pool.next_batch, last_batch_, "batches");
    raise(s_.pool.next_machine, last_machine_, "machines");
    raise(s_.pool.next_change, rows_.last_change, "changes");
    s_.order_requesting();
    s_.stored_pool = rows_.pool;  // so that raised counters are stored with the next event
    s_.touched_users.clear();
    for (auto& [name, user] : s_.users) {
      user.touched = false;
      s_.spare_users.push_back(&user);
    }
    s_.forget_spare_users();
    return std::move(complaints_);
  }

 private:
  void complain(std::string sentence) { complaints_.push_back(std::move(sentence)); }

  void add_user(const UserRecord& row) {
    const double default_shares = s_.parameters.default_shares;
    UserRecord& record = s_.user(row.name).record;
    record = row;
    if (!(row.shares > 0) || !std::isfinite(row.shares)) {
      complain("user " + row.name + " had no valid shares: default used");
      record.shares = default_shares;
    }
    for (double* value : {&record.usage, &record.charges}) {
      if (*value >= 0 && std::isfinite(*value)) continue;
      complain("user " + row.name + " had no valid usage: 0 used");
      *value = 0;
    }
  }

  void add_machine(const MachineRecord& row) {
    if (row.id == 0 || s_.machines.contains(row.id)) {
      return complain("machine " + std::to_string(row.id) + " is left out: no valid id");
    }
    last_machine_ = std::max(last_machine_, row.id);
    Machine& m = s_.machines[row.id];
    m.due_kind = Timed::Kind::kMachine;
    m.due_id = row.id;
    m.record = row;
    m.kind = s_.idle.class_of(row, s_.queue);
    m.disk_free = row.disk;
    m.last_contact = s_.now;
    m.silent = row.state == MachineState::kSilent;
    const auto [name, made] = s_.machine_names.try_emplace(row.name, row.id);
    if (!made && row.state != MachineState::kGone) name->second = row.id;
    s_.schedule(m);
  }

  // If the row is ignored, its jobs continue without the condition.
  void add_batch(const BatchRecord& row) {
    if (row.id == 0 || !row.stop_when.is_set() || s_.batches.contains(row.id)) {
      return complain(name_of(row) + " is left out: no valid id or condition");
    }
    if (row.stopped_by != 0) {
      return complain(name_of(row) + " is left out: it has stopped, yet has live jobs");
    }
    s_.batches[row.id].record = row;
  }

  // Ids are never assigned twice.
  void raise(uint64_t& next, uint64_t last, const std::string& what) {
    if (last < next) return;
    complain("the counter of " + what + " was below " + std::to_string(last) + ": raised");
    next = last + 1;
  }

  void add_job(JobRecord row) {
    if (row.id == 0 || !is_known(row.state) || s_.jobs.contains(row.id)) {
      return complain(name_of(row.id) + " is left out: no valid id or state");
    }
    if (row.count == 0 || row.count - 1 > std::numeric_limits<JobId>::max() - row.id) {
      return complain(name_of(row.id) + " is left out: no valid count");
    }
    if (row.id <= last_job_ && s_.job_with(row.id) != nullptr) {
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
      s_.adopt(std::move(row));
    }
  }

  void add_attempt(const AttemptRecord& row) {
    if (!is_known(row.state)) return complain(name_of(row.key) + " is left out: no valid state");
    Job* job = s_.live_job(row.key.job);
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
    Machine* m = s_.machine(row.machine);
    if (m == nullptr) return complain(name_of(row.key) + " is left out: its machine is not known");
    if (s_.attempts.contains(row.key.job)) {
      return complain(name_of(row.key) + " is left out: its job has another live one");
    }
    Attempt& attempt = s_.attempts[row.key.job];
    attempt.record = row;
    attempt.due_id = row.key.job;
    attempt.machine = m;
    attempt.job = job;
    attempt.receipt = s_.now;
    m->running.insert(std::lower_bound(m->running.begin(), m->running.end(), row.key.job),
                      row.key.job);
    set_due(s_.due, attempt, s_.reassign_at(attempt));
    if (job != nullptr) return belong(attempt, job->record);
    const auto found = final_jobs_.find(row.key.job);
    if (found != final_jobs_.end()) return belong(attempt, found->second);
    complain(name_of(row.key) + " continues, but its job is not stored: it is charged to no user");
  }

  void belong(Attempt& attempt, const JobRecord& job) {
    attempt.user = &s_.user(job.user);
    ++attempt.user->attempts;
    attempt.batch = job.batch;
  }

  // A job recorded as placed or running must have an attempt; one without is set to
  // waiting, which is stored with its next change. If neither a live attempt nor the
  // end of the newest is recorded, the attempt may still be running.
  void settle_jobs() {
    for (const JobRecord& row : rows_.jobs) {
      Job* job = s_.live_job(row.id);
      if (job == nullptr) continue;
      JobRecord& record = job->record;
      if (is_at_work(record.state) && s_.live_attempt(row.id) == nullptr) {
        complain(name_of(row.id) + " was at work without an attempt: it waits again");
        record.state = JobState::kWaiting;
        s_.waiting += record.count;
        job->user->waiting += record.count;
        s_.queue.began_to_wait(*job->host, record.count);
      }
      const bool accounted = record.attempts == 0 || s_.live_attempt(row.id) != nullptr ||
                             job->last_end != EndReason::kNone;
      if (!accounted) {  // ServerStarted, which follows, makes it wait for the lease
        s_.unaccounted.push_back(row.id);
        continue;
      }
      if (record.state == JobState::kWaiting) s_.enqueue(*job);
    }
  }

  Pool::State& s_;
  Snapshot rows_;
  std::unordered_map<JobId, JobRecord> final_jobs_;
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
