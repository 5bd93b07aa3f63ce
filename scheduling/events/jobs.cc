// Events of jobs: submitted, held, released, removed, and given another priority.
#include <algorithm>

#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {
// Not by an administrator.
bool is_by_user(const std::string& by, const Job& job) {
  return by.empty() || by == job.record.user;
}
}  // namespace

void Pool::State::on(const BatchOpened&) { changes.answer().batch = changes.take_batch_id(); }

void Pool::State::on(const BatchReserved& event) {
  changes.answer().first_job = changes.take_job_ids(event.count);
  if (event.stop_when.is_set() || event.at_most > 0)
    jobs.open_batch(event.batch, event.stop_when, event.at_most, event.count);
}

namespace {

JobRecord new_record(const Submitted& event, const Submitted::Job& wanted, Micros now) {
  JobRecord record;
  record.count = wanted.count;
  record.batch = event.batch;
  record.user = event.user;
  record.submit_host = event.submit_host;
  record.needs = wanted.needs;
  record.program = wanted.program;
  record.priority = wanted.priority;
  record.retries_left = wanted.retries;
  record.earliest = wanted.earliest;
  record.submitted = now;
  record.share_priority_at = now;
  record.state = JobState::kHeld;  // for adopt: not counted yet
  record.reason = "new";
  return record;
}

// Whether the ids of the piece were reserved and are not in use.
bool fits(const Submitted& event, JobBook& jobs, JobId next_job) {
  JobId end = event.piece.first;
  for (const Submitted::Job& wanted : event.jobs) end += wanted.count;
  return end <= next_job && jobs.with(event.piece.first) == nullptr;
}

}  // namespace

void Pool::State::on(const Submitted& event) {
  const bool is_piece = event.piece.first != 0;
  if (is_piece && !fits(event, jobs, changes.counters().next_job)) return;
  JobId next = is_piece ? event.piece.first : changes.counters().next_job;
  changes.answer().first_job = next;
  jobs.expect(event.jobs.size());
  changes.expect(2 * event.jobs.size() + 8);
  if (event.stop_when.is_set() || event.at_most > 0)
    jobs.open_batch(event.batch, event.stop_when, event.at_most);
  std::vector<Dependent*> dependents;
  uint32_t index = event.piece.index;
  for (const Submitted::Job& wanted : event.jobs) {
    if (wanted.count == 0) continue;
    JobRecord record = new_record(event, wanted, changes.now());
    record.id = is_piece ? next : changes.take_job_ids(wanted.count);
    next += wanted.count;
    record.index = index;
    index += static_cast<uint32_t>(wanted.count);
    if (!wanted.after.empty() || event.piece.gated) {
      RelationRecord relation{{record.id, record.count}, event.on_never, wanted.after};
      if (event.piece.gated) relation.gate = Gate::kEntering;
      dependents.push_back(relations.add(std::move(relation)));
    }
    Job& job = jobs.adopt(std::move(record));
    jobs.set_state(job, JobState::kWaiting);
    if (job.waits_for != nullptr) continue;  // JobBook::make_ready
    jobs.note_submitted(job);
    if (job.batch != nullptr && job.batch->record.stopped_by != 0)
      remove(job, "the batch had stopped, because of job " +
                      std::to_string(job.batch->record.stopped_by) + ", before it could run");
    else
      jobs.enqueue(job);
  }
  for (Dependent* dependent : dependents) {
    relations.touch(*dependent);
    if (!event.piece.gated) begin_relation(*dependent);
  }
  if (is_piece) jobs.note_to_come(event.batch, event.piece.to_come);
}

// Calls `change` for each live job in the ranges, split from others. `change` returns
// whether it changed anything.
void Pool::State::control(const std::vector<JobRange>& ranges, const std::vector<JobState>& only_in,
                          const std::function<bool(Job&)>& change) {
  const auto asked_for = [&](JobState state) {
    return only_in.empty() || std::find(only_in.begin(), only_in.end(), state) != only_in.end();
  };
  for (const JobRange& range : ranges) {
    uint64_t changed = 0;
    for (Job* job : jobs.split_out(range))
      if (asked_for(job->record.state) && change(*job)) changed += job->record.count;
    changes.answer().changed += changed;
    changes.answer().unchanged += range.count - changed;
  }
}

void Pool::State::forgo(const Job& job) {
  if (job.promised == nullptr) return;
  const auto gives_way = [&](JobId id) {
    return attempts.find(id)->record.preempted_for == job.record.id;
  };
  if (std::ranges::any_of(job.promised->running, gives_way)) ledger.note_forgone(*job.user);
}

void Pool::State::remove(Job& job, const std::string& reason) {
  job.record.reason = reason;
  jobs.set_state(job, JobState::kRemoved, EndReason::kRemoved);
  if (Attempt* attempt = attempts.find(job.record.id)) {
    tell_to_leave(*attempt, LeaveReason::kRemoved);
    attempt->job = nullptr;
  }
}

void Pool::State::on(const JobsRemoved& event) {
  const std::string reason = event.by.empty() ? "removed" : "removed by " + event.by;
  control(event.jobs, event.only_in, [&](Job& job) {
    if (is_by_user(event.by, job)) forgo(job);
    remove(job, reason);
    return true;
  });
}

void Pool::State::on(const JobsHeld& event) {
  const std::string by = event.by.empty() ? "" : "by " + event.by + " ";
  control(event.jobs, event.only_in, [&](Job& job) {
    if (job.record.state == JobState::kHeld) return false;
    if (is_by_user(event.by, job)) forgo(job);
    job.record.reason = event.reason.empty() ? "held " + by + "until it is released" : event.reason;
    jobs.set_state(job, JobState::kHeld, EndReason::kHeld);
    if (Attempt* attempt = attempts.find(job.record.id))
      tell_to_leave(*attempt, LeaveReason::kHeld);
    return true;
  });
}

void Pool::State::on(const JobsReleased& event) {
  control(event.jobs, event.only_in, [this](Job& job) {
    if (job.record.state != JobState::kHeld) return false;
    if (job.waits_for != nullptr && job.waits_for->is_lost()) {
      give_up(job, *job.waits_for);
      return false;
    }
    job.record.reason = "released";
    job.record.vain = 0;
    jobs.set_state(job, JobState::kWaiting);
    jobs.enqueue(job);  // with its old priority, which drifted as if it had been waiting
    return true;
  });
}

void Pool::State::on(const PrioritySet& event) {
  control(event.jobs, event.only_in,
          [&](Job& job) { return jobs.set_priority(job, event.priority); });
}

}  // namespace sublet::scheduling
