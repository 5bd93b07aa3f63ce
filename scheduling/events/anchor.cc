// What the brain knows besides its records, and how a restored brain learns it.
#include <algorithm>

#include "scheduling/state.h"

namespace sublet::scheduling {

Anchored Pool::anchor() const {
  const State& s = *state_;
  Anchored anchor;
  anchor.parameters = s.parameters;
  for (const Machine* m : s.machines.all())
    anchor.machines.push_back({m->record.id, m->away, m->silent, m->memory_free, m->disk_free,
                               m->last_contact, m->paused_until, m->registration, m->away_since,
                               m->promised_to != nullptr ? m->promised_to->record.id : 0,
                               m->owner_seen, m->load, m->granted, m->ahead.most,
                               m->ahead.short_runs, m->ahead.last_end, m->ahead.turns});
  for (const MachineId id : idle()) anchor.idle.push_back({id, s.machines.find(id)->idle_since});
  for (const auto& [job, attempt] : s.attempts.all())
    anchor.attempts.push_back({job, attempt.receipt, attempt.registration, attempt.delivered,
                               attempt.memory_offered, attempt.used.memory, attempt.used.disk,
                               attempt.ahead, attempt.ahead_until, attempt.placed_ahead,
                               attempt.turn, attempt.called_back});
  std::sort(anchor.attempts.begin(), anchor.attempts.end(),
            [](const auto& a, const auto& b) { return a.job < b.job; });
  anchor.requesting = requesting();
  for (const auto& [id, job] : s.matcher.licensed())
    anchor.licensed.push_back({id, job->licensed->record.id});
  for (const auto& [name, user] : s.ledger.users())
    if (user.turn_owed) anchor.owed.push_back(name);
  return anchor;
}

// The same in the brain that wrote it, which it leaves as it is, and in a restored one.
void Pool::State::on(const Anchored& event) {
  for (const Anchored::MachineNow& known : event.machines) {
    Machine* m = machines.find(known.machine);
    if (m == nullptr) continue;
    machines.anchor(*m, known);
    Job* job = jobs.live(known.promised);
    const bool waits = job != nullptr && job->record.state == JobState::kWaiting &&
                       job->record.count == 1 && job->promised == nullptr;
    if (waits && m->promised_to == nullptr) matcher.promises().make(*m, *job);
  }
  for (const Anchored::Licensed& kept : event.licensed) {
    Job* job = jobs.live(kept.job);
    Machine* m = machines.find(kept.machine);
    const bool waits = job != nullptr && job->line != nullptr && job->record.count == 1 &&
                       job->licensed == nullptr;
    if (waits && m != nullptr && licences.may_keep(job->demand->group->licences))
      matcher.keep_licences(*job, *m);
  }
  for (const Anchored::AttemptNow& known : event.attempts)
    if (Attempt* attempt = attempts.find(known.job)) attempts.anchor(*attempt, known);
  for (const std::string& name : event.owed)
    if (const auto user = ledger.users().find(name); user != ledger.users().end())
      ledger.owe_turn(user->second);
  for (const Anchored::Idle& place : event.idle) {
    Machine* m = machines.find(place.machine);
    if (m != nullptr) matcher.idle().update(*m, true, place.since);
  }
  // No waiting job fits any of them, or it would have been placed: to search all of them again
  // would take too long in a large pool.
  matcher.note_allocated();
  std::vector<Host*> hosts;
  for (const std::string& name : event.requesting) {
    Host* host = matcher.hosts().waiting(name);
    if (host != nullptr) hosts.push_back(host);
  }
  matcher.hosts().requeue(hosts);
}

}  // namespace sublet::scheduling
