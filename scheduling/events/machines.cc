// Events of workstations: join, report, renew, withdraw; drained and cleared by administrators.
#include <algorithm>

#include "scheduling/state.h"

namespace sublet::scheduling {

Machine* Pool::State::machine(MachineId id) {
  const auto it = machines.find(id);
  return it == machines.end() ? nullptr : &it->second;
}
const Machine* Pool::State::machine(MachineId id) const {
  const auto it = machines.find(id);
  return it == machines.end() ? nullptr : &it->second;
}

// The machine's next deadline: its silence or the end of its pause.
void Pool::State::schedule(Machine& machine) {
  Micros next = 0;
  if (machine.record.state != MachineState::kGone && !machine.silent) {
    next = machine.last_contact + parameters.lease;
  }
  if (machine.paused_until != 0 && (next == 0 || machine.paused_until < next)) {
    next = machine.paused_until;
  }
  set_due(due, machine, next);
}

void Pool::State::note_contact(Machine& machine) {
  machine.last_contact = now;
  if (machine.silent) {
    machine.silent = false;
    idle.update(machine, false, now);
    touch(machine);
  }
  schedule(machine);
}

void Pool::State::on(const MachineJoined& event) {
  MachineId id = event.machine;
  if (id == 0) {
    id = pool.next_machine++;
  } else if (machine(id) == nullptr) {
    outcome.answer.accepted = false;
    return;
  }
  Machine& m = machines[id];
  idle.remove(m);
  const auto old_name = machine_names.find(m.record.name);
  if (old_name != machine_names.end() && old_name->second == id) machine_names.erase(old_name);
  m.due_kind = Timed::Kind::kMachine;
  m.due_id = id;
  m.record = {id,
              event.name,
              event.os,
              event.architecture,
              event.cores,
              event.slots,
              event.memory,
              event.disk,
              MachineState::kBusy,
              now,
              m.record.draining};
  m.kind = idle.class_of(m.record, queue);
  m.away = false;  // busy until it reports
  m.silent = false;
  m.memory_free = 0;
  m.disk_free = event.disk;
  m.paused_until = 0;
  ++m.registration;
  machine_names[event.name] = id;
  note_contact(m);
  m.rewritten = true;
  touch(m);
  outcome.answer.machine = id;
}

void Pool::State::on(const MachineReported& event) {
  Machine* m = machine(event.machine);
  outcome.answer.accepted = m != nullptr && m->record.state != MachineState::kGone;
  if (!outcome.answer.accepted) return;
  m->away = event.away;
  m->memory_free = event.memory_free;
  m->disk_free = event.disk_free;
  m->paused_until = 0;  // the reason for the refusal may no longer hold
  m->silent = false;
  note_contact(*m);
  idle.update(*m, false, now);
  touch(*m);
}

void Pool::State::on(const MachineWithdrew& event) {
  Machine* m = machine(event.machine);
  outcome.answer.accepted = m != nullptr && m->record.state != MachineState::kGone;
  if (!outcome.answer.accepted) return;
  m->away = false;
  m->silent = false;
  m->paused_until = 0;
  m->record.state = MachineState::kGone;
  m->record.state_since = now;
  m->rewritten = true;
  idle.remove(*m);
  schedule(*m);
  touch(*m);
}

void Pool::State::on(const MachineDrained& event) {
  Machine* m = machine(event.machine);
  outcome.answer.accepted = m != nullptr;
  if (m == nullptr || m->record.draining == event.drained) return;
  outcome.answer.changed = 1;
  m->record.draining = event.drained;
  m->rewritten = true;
  idle.update(*m, false, now);
  touch(*m);
}

void Pool::State::on(const MachineEvicted& event) {
  const Machine* m = machine(event.machine);
  outcome.answer.accepted = m != nullptr;
  if (m == nullptr) return;
  for (const JobId id : m->running) {
    Attempt& attempt = attempts.at(id);
    if (!precedes(attempt.record.state, AttemptState::kLeaving)) continue;
    tell_to_leave(attempt, LeaveReason::kAdministrator);
    ++outcome.answer.changed;
  }
}

void Pool::State::on(const Renewed& event) {
  Machine* m = machine(event.machine);
  if (m != nullptr && m->record.state != MachineState::kGone) note_contact(*m);
  for (const Renewed::Status& status : event.attempts) {
    outcome.answer.verdicts.emplace_back(status.key, renew(status, event.machine));
  }
  if (event.first && m != nullptr) lose_unnamed(*m, event.attempts);
}

// Ends as lost the attempts of earlier registrations that the machine no longer holds.
// Orders of the current registration may still be in transit.
void Pool::State::lose_unnamed(Machine& m, const std::vector<Renewed::Status>& named) {
  std::vector<JobId> lost;
  for (const JobId id : m.running) {
    const Attempt& attempt = attempts.at(id);
    const bool holds = std::any_of(named.begin(), named.end(), [&](const Renewed::Status& s) {
      return s.key == attempt.record.key;
    });
    if (!holds && attempt.registration < m.registration) lost.push_back(id);
  }
  for (const JobId id : lost) {
    end_attempt(attempts.at(id),
                {EndReason::kLost, "machine " + m.record.name + " registered again without it"});
  }
}

}  // namespace sublet::scheduling
