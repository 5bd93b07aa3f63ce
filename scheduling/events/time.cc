// Ticks, deadlines, restarts of the server, and shares.
#include <algorithm>
#include <cmath>

#include "protocol/lease.h"
#include "scheduling/state.h"

namespace sublet::scheduling {

void Pool::State::on(const SharesSet& event) {
  if (!(event.shares > 0) || !std::isfinite(event.shares)) {
    outcome.answer.accepted = false;
    return;
  }
  User& u = user(event.user);
  if (u.record.by_administrator && event.by == SharesSet::By::kSettings) return;
  const bool by_administrator = event.by == SharesSet::By::kAdministrator;
  if (u.record.shares == event.shares && u.record.by_administrator == by_administrator) return;
  u.record.shares = event.shares;
  u.record.by_administrator = by_administrator;
  touch(u);
}

// Of the ticks that fell into a time in which the server was down, this is the last.
void Pool::State::on(const Ticked&) {
  const Micros since = pool.last_tick == 0 ? 0 : now - pool.last_tick;
  const int64_t ticks = std::max<int64_t>(1, since / parameters.tick);
  pool.last_tick = now;
  for (auto& [name, u] : users) {
    if (u.record.usage == 0 && u.record.charges == 0) continue;
    u.record.usage = usage_after_ticks(u.record.usage, u.record.charges, k1, ticks);
    u.record.charges = 0;
    touch(u);
  }
}

void Pool::State::on(const TimePassed&) {
  while (!due.empty() && due.top()->due <= now) {
    Timed* timed = due.top();
    if (timed->due_kind == Timed::Kind::kAttempt) {
      expire(*static_cast<Attempt*>(timed));
      continue;
    }
    Machine& m = *static_cast<Machine*>(timed);
    if (m.paused_until != 0 && m.paused_until <= now) m.paused_until = 0;
    if (!m.silent && m.last_contact + parameters.lease <= now) m.silent = true;
    idle.update(m, false, now);
    schedule(m);
    touch(m);
  }
}

// A new server process has no reports yet: each machine is busy until it reports, and
// its leases start again now. REQUESTING gets an order that depends only on the stored
// jobs, so that a restored brain continues exactly like one that was never stopped.
void Pool::State::on(const ServerStarted&) {
  for (auto& [id, m] : machines) {
    if (m.record.state == MachineState::kGone) continue;
    idle.remove(m);
    m.away = false;
    m.silent = false;
    m.memory_free = 0;
    m.disk_free = m.record.disk;
    m.paused_until = 0;
    m.last_contact = now;
    schedule(m);
    touch(m);
  }
  for (auto& [id, attempt] : attempts) {
    attempt.receipt = now;
    attempt.delivered = 0;
    attempt.memory_offered = 0;
    // As in a restored brain: of the current registration, until the machine registers again.
    attempt.registration = attempt.machine->registration;
    set_due(due, attempt, reassign_at(attempt));
  }
  for (const JobId id : unaccounted) {
    Job* job = live_job(id);
    if (job == nullptr) continue;
    job->record.not_before = now + protocol::reassign_delay_us(parameters.lease);
    touch(*job);
    if (job->record.state != JobState::kWaiting) continue;
    job->record.reason = "attempt " + std::to_string(job->record.attempts) +
                         " is missing from the store and may still be running";
    enqueue(*job);
  }
  unaccounted.clear();
  order_requesting();
}

void Pool::State::order_requesting() {
  std::unordered_map<Host*, JobId> oldest;
  for (const auto& [id, job] : jobs) {
    if (job.record.state != JobState::kWaiting) continue;
    JobId& first = oldest.try_emplace(job.host, id).first->second;
    first = std::min(first, id);
  }
  std::vector<std::pair<JobId, Host*>> order;
  for (const auto& [host, id] : oldest) order.emplace_back(id, host);
  std::sort(order.begin(), order.end());
  std::vector<Host*> hosts;
  for (const auto& [id, host] : order) hosts.push_back(host);
  queue.requeue_hosts(hosts);
}

}  // namespace sublet::scheduling
