// Jobs come, are held, released and removed; a job's state and place in line.
#include <algorithm>

#include "scheduling/state.h"

namespace sublet::scheduling {

Job* Pool::State::live_job(JobId id) {
  const auto it = jobs.find(id);
  // A job that became final in this very apply is not live either.
  return it == jobs.end() || is_final(it->second.record.state) ? nullptr : &it->second;
}
const Job* Pool::State::live_job(JobId id) const { return const_cast<State*>(this)->live_job(id); }

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
  job.due_kind = Timed::Kind::kJob;
  job.due_id = id;
  const JobState state = job.record.state;
  if (state != JobState::kHeld) ++job.user->active;
  if (state == JobState::kWaiting) {
    ++waiting;
    ++job.user->waiting;
    queue.began_to_wait(*job.host);
  }
  return job;
}

void Pool::State::on(const BatchOpened&) { outcome.answer.batch = pool.next_batch++; }

void Pool::State::on(const Submitted& event) {
  outcome.answer.first_job = pool.next_job;
  jobs.reserve(jobs.size() + event.jobs.size());
  outcome.records.reserve(2 * event.jobs.size() + 8);
  uint32_t index = 0;
  for (const Submitted::Job& wanted : event.jobs) {
    JobRecord record;
    record.id = pool.next_job++;
    record.batch = event.batch;
    record.index = index++;
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
    // As if it had just returned (the source never gives a first priority).
    if (!parameters.initial_priority_zero) raise_priority(job);
    enqueue(job);
  }
}

// Counts a job in or out of what its state belongs to, and writes the change.
void Pool::State::set_state(Job& job, JobState state, EndReason ended) {
  const auto is_active = [](JobState s) { return !is_final(s) && s != JobState::kHeld; };
  const JobState before = job.record.state;
  if (before == JobState::kWaiting) {
    queue.take(job);
    set_due(resting, job, 0);
    --waiting;
    --job.user->waiting;
    queue.ceased_to_wait(*job.host);
  }
  if (is_active(before)) --job.user->active;
  if (is_active(state)) ++job.user->active;
  if (state == JobState::kWaiting) {
    ++waiting;
    ++job.user->waiting;
    queue.began_to_wait(*job.host);
  }
  job.record.state = state;
  job.record.changed = now;
  touch(job);
  outcome.records.emplace_back(ChangeRecord{pool.next_change++, now, job.record.id,
                                            job.record.batch, job.record.user, state,
                                            job.record.attempts, ended});
}

void Pool::State::raise_priority(Job& job) {
  JobRecord& record = job.record;
  const User& user = *job.user;
  // `active` counts the job itself, also one that is held and so not in the queue.
  const uint64_t active = user.waiting + (record.state == JobState::kWaiting ? 0 : 1);
  record.share_priority = drift.value_at(record.share_priority, record.share_priority_at, now) +
                          priority_step(user.record.usage, active, user.record.shares);
  record.share_priority_at = now;
  touch(job);
}

void Pool::State::enqueue(Job& job) {
  // One attempt counts: a released job waits for the end of the one that was
  // told to leave.
  if (live_attempt(job.record.id) != nullptr) return;
  if (job.record.not_before > now) return set_due(resting, job, job.record.not_before);
  queue.add(job, drift.order(job.record.share_priority, job.record.share_priority_at));
}

void Pool::State::end_backoffs() {
  while (!resting.empty() && resting.top()->due <= now) {
    Job& job = *static_cast<Job*>(resting.top());
    set_due(resting, job, 0);
    enqueue(job);
  }
}

// The slot stays taken until the attempt has ended or its lease is over.
void Pool::State::tell_to_leave(Attempt& attempt, LeaveReason reason) {
  advance(attempt, AttemptState::kLeaving);
  outcome.decisions.push_back(TellToLeave{attempt.record.key, attempt.machine->record.id, reason});
}

void Pool::State::on(const JobsRemoved& event) {
  for (const JobId id : event.jobs) {
    Job* job = live_job(id);
    if (job == nullptr) {
      ++outcome.answer.unchanged;
      continue;
    }
    job->record.reason = "removed";
    set_state(*job, JobState::kRemoved, EndReason::kRemoved);
    if (Attempt* attempt = live_attempt(id)) {
      tell_to_leave(*attempt, LeaveReason::kRemoved);
      attempt->job = nullptr;
    }
    ++outcome.answer.changed;
  }
}

void Pool::State::on(const JobsHeld& event) {
  for (const JobId id : event.jobs) {
    Job* job = live_job(id);
    if (job == nullptr || job->record.state == JobState::kHeld) {
      ++outcome.answer.unchanged;
      continue;
    }
    job->record.reason = "held until it is released";
    set_state(*job, JobState::kHeld, EndReason::kHeld);
    if (Attempt* attempt = live_attempt(id)) tell_to_leave(*attempt, LeaveReason::kHeld);
    ++outcome.answer.changed;
  }
}

void Pool::State::on(const JobsReleased& event) {
  for (const JobId id : event.jobs) {
    Job* job = live_job(id);
    if (job == nullptr || job->record.state != JobState::kHeld) {
      ++outcome.answer.unchanged;
      continue;
    }
    job->record.reason = "released";
    set_state(*job, JobState::kWaiting);
    enqueue(*job);  // with the priority it had, drifted as while waiting
    ++outcome.answer.changed;
  }
}

void Pool::State::erase_final_jobs() {
  for (Job* job : touched_jobs) {
    job->touched = false;
    if (!is_final(job->record.state)) continue;
    Group* group = job->group;
    Host* host = job->host;
    if (--job->user->jobs == 0) spare_users.push_back(job->user);
    jobs.erase(job->record.id);
    if (--host->jobs == 0) queue.forget(host);
    if (--group->jobs > 0) continue;
    idle.forget(group);
    queue.forget(group);
  }
}

void Pool::State::forget_spare_users() {
  std::sort(spare_users.begin(), spare_users.end());
  spare_users.erase(std::unique(spare_users.begin(), spare_users.end()), spare_users.end());
  for (const User* user : spare_users) {
    const UserRecord& record = user->record;
    const bool worth_knowing =
        record.usage != 0 || record.charges != 0 || record.shares != parameters.default_shares;
    if (worth_knowing || user->jobs > 0 || user->attempts > 0) continue;
    users.erase(users.find(record.name));
  }
  spare_users.clear();
}

}  // namespace sublet::scheduling
