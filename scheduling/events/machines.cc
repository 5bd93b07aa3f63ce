// Events of workstations: join, report, renew, withdraw; drained and cleared by administrators.
#include <algorithm>

#include "scheduling/state.h"

namespace sublet::scheduling {

void Pool::State::on(const MachineJoined& event) {
  Machine* m = machines.join(event);
  changes.answer().accepted = m != nullptr;
  if (m == nullptr) return;
  settle_ahead(*m);
  changes.answer().machine = m->record.id;
}

void Pool::State::on(const MachineReported& event) {
  Machine* m = machines.find(event.machine);
  changes.answer().accepted = m != nullptr && !is_gone(*m);
  if (!changes.answer().accepted) return;
  const bool appears = event.away && !m->away;
  machines.report(*m, event);
  // Its owner needs what was promised, or nobody is left who could make room.
  if (m->promised_to != nullptr && !keeps_room(*m) &&
      (m->running.empty() || !amounts_of(m->promised_to->record.needs).within(lent_by(*m))))
    matcher.promises().forget(*m);
  if (appears) note_capacity();
}

void Pool::State::on(const MachineWithdrew& event) {
  Machine* m = machines.find(event.machine);
  changes.answer().accepted = m != nullptr && !is_gone(*m);
  if (changes.answer().accepted) machines.withdraw(*m);
}

void Pool::State::on(const MachineDrained& event) {
  Machine* m = machines.find(event.machine);
  changes.answer().accepted = m != nullptr;
  if (m == nullptr || !machines.drain(*m, event.drained)) return;
  changes.answer().changed = 1;
  settle_ahead(*m);
}

void Pool::State::on(const MachineEvicted& event) {
  const Machine* m = machines.find(event.machine);
  changes.answer().accepted = m != nullptr;
  if (m == nullptr) return;
  for (const JobId id : m->running) {
    Attempt& attempt = *attempts.find(id);
    if (!precedes(attempt.record.state, AttemptState::kLeaving)) continue;
    tell_to_leave(attempt, LeaveReason::kAdministrator);
    ++changes.answer().changed;
  }
}

void Pool::State::on(const Renewed& event) {
  Machine* m = machines.find(event.machine);
  if (m != nullptr && !is_gone(*m)) machines.note_contact(*m);
  for (const Renewed::Status& status : event.attempts) {
    changes.answer().verdicts.emplace_back(status.key,
                                           renew(status, event.machine, event.says_waits));
  }
  if (m != nullptr) note_use(*m, event.attempts);
  if (event.report) on(*event.report);
  if (event.first && m != nullptr) lose_unnamed(*m, event.attempts);
}

void Pool::State::note_use(Machine& m, const std::vector<Renewed::Status>& statuses) {
  bool changed = false;
  for (const Renewed::Status& status : statuses) {
    Attempt* attempt = attempts.present(status.key, m.record.id);
    if (attempt != nullptr && attempts.note_use(*attempt, {0, status.memory, status.disk}))
      changed = true;
  }
  if (changed) machines.note_slots(m, false);
}

// Ends as lost the attempts of earlier registrations that the machine no longer holds.
// Orders of the current registration may still be in transit.
void Pool::State::lose_unnamed(Machine& m, const std::vector<Renewed::Status>& named) {
  std::vector<JobId> lost;
  for (const JobId id : m.running) {
    const Attempt& attempt = *attempts.find(id);
    const bool holds = std::any_of(named.begin(), named.end(), [&](const Renewed::Status& s) {
      return s.key == attempt.record.key;
    });
    if (!holds && attempt.registration < m.registration) lost.push_back(id);
  }
  for (const JobId id : lost) {
    end_attempt(*attempts.find(id),
                {EndReason::kLost, "machine " + m.record.name + " registered again without it"});
  }
}

}  // namespace sublet::scheduling
