// Assigns jobs to machines. IDLE is served from its head: each machine gets the
// best waiting job that fits it (JobQueue::best_for), or keeps its position if none
// does. Only possible changes are considered: machines that have changed, and, for
// groups with a new job that may fit one, all idle machines that suit them, once. So
// no decision scans the queue, and after each apply no waiting job fits an idle
// machine.
#include <algorithm>

#include "scheduling/queries/text.h"
#include "scheduling/state.h"

namespace sublet::scheduling {

void Pool::State::allocate() {
  if (idle.changed().empty() && queue.newly_queued().empty()) return;
  const std::vector<MachineClass*> kinds = kinds_for_newly_queued();
  uint64_t served = 0;
  while (waiting > 0) {
    Machine* m = next_to_serve(served, kinds);
    if (m == nullptr) break;
    served = m->place;
    while (m->place != 0) {
      Job* job = queue.best_for(*m);
      if (job == nullptr) break;
      place(*job, *m);
    }
  }
  idle.changed().clear();
  for (Group* group : queue.newly_queued()) group->newly_queued = false;
  queue.newly_queued().clear();
}

// The classes with idle machines that suit a group with newly queued jobs.
std::vector<MachineClass*> Pool::State::kinds_for_newly_queued() {
  std::vector<MachineClass*> kinds;
  for (const auto& kind : idle.classes()) {
    if (kind->idle.empty()) continue;
    const auto wants = [&](const Group* g) { return !g->open.empty() && suits(*kind, g->needs); };
    if (std::any_of(queue.newly_queued().begin(), queue.newly_queued().end(), wants))
      kinds.push_back(kind.get());
  }
  return kinds;
}

// The next machine towards the tail of IDLE that may fit a job: a changed one,
// or one of these classes.
Machine* Pool::State::next_to_serve(uint64_t after, const std::vector<MachineClass*>& kinds) {
  Machine* next = nullptr;
  const auto consider = [&](const std::map<uint64_t, Machine*>& line) {
    const auto it = line.upper_bound(after);
    if (it != line.end() && (next == nullptr || it->first < next->place)) next = it->second;
  };
  consider(idle.changed());
  for (const MachineClass* kind : kinds) consider(kind->idle);
  return next;
}

void Pool::State::place(Job& job, Machine& m) {
  if (job.record.count > 1) split(job, 1);
  Attempt& attempt = attempts[job.record.id];
  AttemptRecord& record = attempt.record;
  record.key = {job.record.id, ++job.record.attempts};
  record.machine = m.record.id;
  record.reason = why_first(job, m);
  record.decided = now;
  record.resumed_generation = job.record.generation;
  record.ready = job.record.changed;
  attempt.due_id = record.key.job;
  attempt.machine = &m;
  attempt.job = &job;
  attempt.user = job.user;
  ++job.user->attempts;
  attempt.batch = job.record.batch;
  attempt.receipt = now;  // its first lease starts with the decision
  attempt.registration = m.registration;
  attempt.memory_offered = memory_offered(m);
  set_due(due, attempt, reassign_at(attempt));
  touch(attempt);
  m.running.insert(std::lower_bound(m.running.begin(), m.running.end(), job.record.id),
                   job.record.id);
  idle.update(m, false, now);
  touch(m);
  job.record.reason.clear();
  job.last_end = EndReason::kNone;
  set_state(job, JobState::kPlaced);
  queue.served(*job.host);
  outcome.decisions.push_back(StartAttempt{record.key, m.record.id, job.record.generation, now,
                                           job.record.user, job.record.checkpoint_bytes});
}

std::string Pool::State::why_first(const Job& job, const Machine& m) const {
  const User& u = *job.user;
  const double priority =
      drift.value_at(job.record.share_priority, job.record.share_priority_at, now);
  std::string text;
  text.reserve(160);
  text += "first in the queue: " + u.record.name + ", priority " + number_text(priority);
  text += " (usage " + number_text(u.record.usage) + " CPU s, " + std::to_string(u.waiting);
  text +=
      " active, " + number_text(u.record.shares) + (u.record.shares == 1 ? " share" : " shares");
  text += "); machine " + m.record.name + " idle for ";
  text += std::to_string((now - m.idle_since) / 1'000'000) + " s";
  return text;
}

}  // namespace sublet::scheduling
