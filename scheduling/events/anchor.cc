// What the brain knows besides its records, and how a restored brain learns it.
#include <algorithm>

#include "scheduling/state.h"

namespace sublet::scheduling {

Anchored Pool::anchor() const {
  const State& s = *state_;
  Anchored anchor;
  anchor.parameters = s.parameters;
  for (const auto& [id, m] : s.machines)
    anchor.machines.push_back({id, m.away, m.silent, m.memory_free, m.disk_free, m.last_contact,
                               m.paused_until, m.registration});
  for (const MachineId id : idle()) anchor.idle.push_back({id, s.machines.at(id).idle_since});
  for (const auto& [job, attempt] : s.attempts)
    anchor.attempts.push_back(
        {job, attempt.receipt, attempt.registration, attempt.delivered, attempt.memory_offered});
  std::sort(anchor.attempts.begin(), anchor.attempts.end(),
            [](const auto& a, const auto& b) { return a.job < b.job; });
  anchor.requesting = requesting();
  return anchor;
}

// The same in the brain that wrote it, which it leaves as it is, and in a restored one.
void Pool::State::on(const Anchored& event) {
  for (const Anchored::MachineNow& now_of : event.machines) {
    Machine* m = machine(now_of.machine);
    if (m == nullptr) continue;
    idle.remove(*m);
    m->away = now_of.away;
    m->silent = now_of.silent;
    m->memory_free = now_of.memory_free;
    m->disk_free = now_of.disk_free;
    m->last_contact = now_of.last_contact;
    m->paused_until = now_of.paused_until;
    m->registration = now_of.registration;
    schedule(*m);
  }
  for (const Anchored::AttemptNow& now_of : event.attempts) {
    Attempt* attempt = live_attempt(now_of.job);
    if (attempt == nullptr) continue;
    attempt->receipt = now_of.receipt;
    attempt->registration = now_of.registration;
    attempt->delivered = now_of.delivered;
    attempt->memory_offered = now_of.memory_offered;
    set_due(due, *attempt, reassign_at(*attempt));
  }
  for (const Anchored::Idle& place : event.idle) {
    Machine* m = machine(place.machine);
    if (m != nullptr) idle.update(*m, true, place.since);
  }
  // No waiting job fits any of them, or it would have been placed: to search all of them again
  // would take too long in a large pool.
  idle.changed().clear();
  std::vector<Host*> hosts;
  for (const std::string& name : event.requesting) {
    Host* host = queue.waiting_host(name);
    if (host != nullptr) hosts.push_back(host);
  }
  queue.requeue_hosts(hosts);
}

}  // namespace sublet::scheduling
