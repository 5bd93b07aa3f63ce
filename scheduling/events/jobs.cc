// Events of jobs: submitted, held, released, removed; a job's state and queue position.
#include <algorithm>

#include "scheduling/state.h"

namespace sublet::scheduling {

Job* Pool::State::live_job(JobId id) {
  const auto it = jobs.find(id);
  // A job that became final in the current apply is not live either.
  return it == jobs.end() || is_final(it->second.record.state) ? nullptr : &it->second;
}
const Job* Pool::State::live_job(JobId id) const { return const_cast<State*>(this)->live_job(id); }

Job* Pool::State::job_with(JobId id) {
  if (Job* job = live_job(id)) return job;
  auto it = arrays.upper_bound(id);
  if (it == arrays.begin()) return nullptr;
  Job* job = (--it)->second;
  const bool inside = id - job->record.id < job->record.count;
  return inside && !is_final(job->record.state) ? job : nullptr;
}
const Job* Pool::State::job_with(JobId id) const { return const_cast<State*>(this)->job_with(id); }

Job& Pool::State::split(Job& job, uint64_t head) {
  JobRecord& record = job.record;
  JobRecord rest = one_of(record, head);
  rest.count = record.count - head;
  rest.share_priority_step = rest.count > 1 ? record.share_priority_step : 0;
  record.count = head;
  if (head == 1) {
    record.share_priority_step = 0;
    arrays.erase(record.id);
  }
  touch(job);
  // Added before it is subtracted, so that the host keeps its turn in REQUESTING.
  const uint64_t moved = rest.count;
  Job& other = adopt(std::move(rest));
  touch(other);
  if (record.state != JobState::kHeld) job.user->active -= moved;
  if (record.state == JobState::kWaiting) {
    waiting -= moved;
    job.user->waiting -= moved;
    queue.ceased_to_wait(*job.host, moved);
    enqueue(other);
  }
  return other;
}

std::vector<Job*> Pool::State::split_out(const JobRange& range) {
  std::vector<Job*> result;
  if (range.first >= pool.next_job) return result;
  const JobId end = range.first + std::min(range.count, pool.next_job - range.first);
  for (JobId id = range.first; id < end;) {
    Job* job = job_with(id);
    if (job == nullptr) {
      ++id;
      continue;
    }
    if (job->record.id < id) job = &split(*job, id - job->record.id);
    if (job->record.count > end - id) split(*job, end - id);
    result.push_back(job);
    id += job->record.count;
  }
  return result;
}

User& Pool::State::user(const std::string& name) {
  const auto [it, made] = users.try_emplace(name);
  User& user = it->second;
  if (made) {
    user.index = ++last_user_index;
    user.record.name = name;
    user.record.shares = parameters.default_shares;
    touch(user);
  }
  return user;
}

Group* Pool::State::group(const Requirements& needs) {
  bool made = false;
  Group* group = queue.group(needs, &made);
  if (made) idle.learn(group);
  return group;
}

Job& Pool::State::adopt(JobRecord record) {
  const JobId id = record.id;
  Job& job = jobs[id];
  job.record = std::move(record);
  job.user = &user(job.record.user);
  job.host = queue.host(job.record.submit_host);
  job.group = group(job.record.needs);
  ++job.group->jobs;
  ++job.host->jobs;
  ++job.user->jobs;
  if (const auto it = batches.find(job.record.batch); it != batches.end()) {
    job.batch = &it->second;
    job.batch->jobs.insert(id);
  }
  job.due_kind = Timed::Kind::kJob;
  job.due_id = id;
  const JobState state = job.record.state;
  const uint64_t count = job.record.count;
  if (count > 1) arrays[id] = &job;
  if (state != JobState::kHeld) job.user->active += count;
  if (state == JobState::kWaiting) {
    waiting += count;
    job.user->waiting += count;
    queue.began_to_wait(*job.host, count);
  }
  return job;
}

void Pool::State::on(const BatchOpened&) { outcome.answer.batch = pool.next_batch++; }

void Pool::State::on(const Submitted& event) {
  outcome.answer.first_job = pool.next_job;
  jobs.reserve(jobs.size() + event.jobs.size());
  outcome.records.reserve(2 * event.jobs.size() + 8);
  if (event.stop_when.is_set()) {
    Batch& batch = batches[event.batch];
    batch.record = {event.batch, event.stop_when, 0, 0, 0};
    touch(batch);
  }
  uint32_t index = 0;
  for (const Submitted::Job& wanted : event.jobs) {
    if (wanted.count == 0) continue;
    JobRecord record;
    record.id = pool.next_job;
    record.count = wanted.count;
    record.batch = event.batch;
    record.index = index;
    pool.next_job += wanted.count;
    index += static_cast<uint32_t>(wanted.count);
    record.user = event.user;
    record.submit_host = event.submit_host;
    record.needs = wanted.needs;
    record.priority = wanted.priority;
    record.retries_left = wanted.retries;
    record.submitted = now;
    record.share_priority_at = now;
    record.state = JobState::kHeld;  // for adopt: not counted yet
    record.reason = "new";
    Job& job = adopt(std::move(record));
    set_state(job, JobState::kWaiting);
    // As if it had just returned (the source does not define an initial priority).
    if (!parameters.initial_priority_zero) raise_priority(job);
    enqueue(job);
  }
}

// Updates all counters and queues for the new state, and records the change.
void Pool::State::set_state(Job& job, JobState state, EndReason ended) {
  const auto is_active = [](JobState s) { return !is_final(s) && s != JobState::kHeld; };
  const JobState before = job.record.state;
  const uint64_t count = job.record.count;
  if (before == JobState::kWaiting) {
    queue.take(job);
    set_due(backing_off, job, 0);
    waiting -= count;
    job.user->waiting -= count;
    queue.ceased_to_wait(*job.host, count);
  }
  if (is_active(before)) job.user->active -= count;
  if (is_active(state)) job.user->active += count;
  if (state == JobState::kWaiting) {
    waiting += count;
    job.user->waiting += count;
    queue.began_to_wait(*job.host, count);
  }
  job.record.state = state;
  job.record.changed = now;
  touch(job);
  outcome.records.emplace_back(ChangeRecord{pool.next_change++, now, job.record.id, count,
                                            job.record.batch, job.record.user, state,
                                            job.record.attempts, ended});
}

void Pool::State::raise_priority(Job& job) {
  JobRecord& record = job.record;
  const User& user = *job.user;
  // `active` includes the job itself, even if it is held and so not in the queue; each
  // job of an array counts those before it.
  const uint64_t others = record.state == JobState::kWaiting ? record.count : 0;
  const uint64_t active = user.waiting - others + 1;
  if (record.count > 1)
    record.share_priority_step = priority_step(user.record.usage, 1, user.record.shares);
  record.share_priority = drift.value_at(record.share_priority, record.share_priority_at, now) +
                          priority_step(user.record.usage, active, user.record.shares);
  record.share_priority_at = now;
  touch(job);
}

void Pool::State::enqueue(Job& job) {
  // Only one attempt at a time: a released job waits for the end of the attempt that
  // was ordered to leave.
  if (live_attempt(job.record.id) != nullptr) return;
  if (job.record.not_before > now) return set_due(backing_off, job, job.record.not_before);
  queue.add(job, drift.order(job.record.share_priority, job.record.share_priority_at));
}

void Pool::State::end_backoffs() {
  while (!backing_off.empty() && backing_off.top()->due <= now) {
    Job& job = *static_cast<Job*>(backing_off.top());
    set_due(backing_off, job, 0);
    enqueue(job);
  }
}

// The slot stays occupied until the attempt has ended or its lease has expired.
void Pool::State::tell_to_leave(Attempt& attempt, LeaveReason reason) {
  advance(attempt, AttemptState::kLeaving);
  outcome.decisions.push_back(TellToLeave{attempt.record.key, attempt.machine->record.id, reason});
}

LeaveReason Pool::State::reason_to_leave(const Attempt& attempt) {
  if (attempt.job == nullptr) return LeaveReason::kRemoved;
  const JobState state = attempt.job->record.state;
  // A job that was held, and perhaps released since.
  const bool held = state == JobState::kHeld || state == JobState::kWaiting;
  return held ? LeaveReason::kHeld : LeaveReason::kAdministrator;
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
    for (Job* job : split_out(range))
      if (asked_for(job->record.state) && change(*job)) changed += job->record.count;
    outcome.answer.changed += changed;
    outcome.answer.unchanged += range.count - changed;
  }
}

void Pool::State::remove(Job& job, const std::string& reason) {
  job.record.reason = reason;
  set_state(job, JobState::kRemoved, EndReason::kRemoved);
  if (Attempt* attempt = live_attempt(job.record.id)) {
    tell_to_leave(*attempt, LeaveReason::kRemoved);
    attempt->job = nullptr;
  }
}

void Pool::State::on(const JobsRemoved& event) {
  const std::string reason = event.by.empty() ? "removed" : "removed by " + event.by;
  control(event.jobs, event.only_in, [&](Job& job) {
    remove(job, reason);
    return true;
  });
}

void Pool::State::on(const JobsHeld& event) {
  const std::string by = event.by.empty() ? "" : "by " + event.by + " ";
  control(event.jobs, event.only_in, [&](Job& job) {
    if (job.record.state == JobState::kHeld) return false;
    job.record.reason = event.reason.empty() ? "held " + by + "until it is released" : event.reason;
    set_state(job, JobState::kHeld, EndReason::kHeld);
    if (Attempt* attempt = live_attempt(job.record.id)) tell_to_leave(*attempt, LeaveReason::kHeld);
    return true;
  });
}

void Pool::State::on(const JobsReleased& event) {
  control(event.jobs, event.only_in, [this](Job& job) {
    if (job.record.state != JobState::kHeld) return false;
    job.record.reason = "released";
    job.record.vain = 0;
    set_state(job, JobState::kWaiting);
    enqueue(job);  // with its old priority, which drifted as if it had been waiting
    return true;
  });
}

void Pool::State::erase_final_jobs() {
  for (Job* job : touched_jobs) {
    job->touched = false;
    if (!is_final(job->record.state)) continue;
    Group* group = job->group;
    Host* host = job->host;
    if (--job->user->jobs == 0) spare_users.push_back(job->user);
    forget_batch(*job);
    arrays.erase(job->record.id);
    jobs.erase(job->record.id);
    if (--host->jobs == 0) queue.forget(host);
    if (--group->jobs == 0) spare_groups.push_back(group);
  }
}

void Pool::State::forget_spare_groups() {
  std::sort(spare_groups.begin(), spare_groups.end());
  spare_groups.erase(std::unique(spare_groups.begin(), spare_groups.end()), spare_groups.end());
  for (Group* group : spare_groups) {
    if (group->jobs > 0) continue;
    idle.forget(group);
    queue.forget(group);
  }
  spare_groups.clear();
}

void Pool::State::forget_spare_users() {
  std::sort(spare_users.begin(), spare_users.end());
  spare_users.erase(std::unique(spare_users.begin(), spare_users.end()), spare_users.end());
  for (const User* user : spare_users) {
    const UserRecord& record = user->record;
    const bool worth_knowing = record.usage != 0 || record.charges != 0 ||
                               record.shares != parameters.default_shares ||
                               record.by_administrator;
    if (worth_knowing || user->jobs > 0 || user->attempts > 0) continue;
    users.erase(users.find(record.name));
  }
  spare_users.clear();
}

}  // namespace sublet::scheduling
