#include "scheduling/books/machine_book.h"

#include <algorithm>
#include <limits>

#include "scheduling/books/job_book.h"
#include "scheduling/matching/matcher.h"

namespace sublet::scheduling {
namespace {

// min(offered, free + used), without overflow: a client may report any number as free.
uint64_t least_of(uint64_t offered, uint64_t free, uint64_t used) {
  return offered - std::min(offered, free) <= used ? offered : free + used;
}

// To all its attempts together: as many cores as it has slots, at least.
Amounts lent_to_all(const Machine& machine) {
  Amounts lent = lent_by(machine);
  lent.cores = std::max<uint64_t>(lent.cores, machine.record.slots);
  return lent;
}

Amounts room_beside(const Machine& machine, const Amounts& taken) {
  const Amounts lent = lent_by(machine);
  return least(lent, lent_to_all(machine) - taken);
}

}  // namespace

Amounts lent_by(const Machine& m) {
  const MachineRecord& record = m.record;
  Amounts lent;
  lent.cores = record.cores;
  lent.memory = record.memory;
  if (m.memory_free > 0) lent.memory = least_of(record.memory, m.memory_free, m.used.memory);
  lent.disk = least_of(record.disk, m.disk_free, m.used.disk);
  return lent;
}

Amounts room_of(const Machine& machine) {
  Amounts taken = machine.reserved;
  if (machine.promised_to != nullptr) taken = taken + amounts_of(machine.promised_to->record.needs);
  return room_beside(machine, taken);
}

Space space_of(const Machine& machine) {
  Space space{room_of(machine), machine.kind->offers};
  space.named.take(machine.named_reserved);
  if (machine.promised_to != nullptr) space.named.take(machine.promised_to->demand->named);
  return space;
}

Space space_without(const Machine& machine, const Amounts& leaving,
                    const rules::NamedAmounts& named_leaving) {
  rules::NamedAmounts reserved = machine.named_reserved;
  reserved.take(named_leaving);
  Space space{room_beside(machine, machine.reserved - leaving), machine.kind->offers};
  space.named.take(reserved);
  return space;
}

bool keeps_room(const Machine& machine) {
  const Job& job = *machine.promised_to;
  if (!may_make_room(machine, job) || machine.paused_until != 0) return false;
  return places_taken(machine) < places_of(machine) &&
         Ask{amounts_of(job.record.needs), job.demand->group->of_machine}.within(
             space_without(machine, {}, {}));
}

// By what it has altogether: what it has at present changes with what its tenants use.
bool may_make_room(const Machine& machine, const Job& job) {
  const MachineRecord& record = machine.record;
  return !is_gone(machine) && !machine.silent && machine.away && !record.draining &&
         !rests(machine) &&
         amounts_of(job.record.needs).within({record.cores, record.memory, record.disk});
}

bool is_within_offer(const Machine& machine) {
  return machine.reserved.within(lent_to_all(machine));
}

uint64_t places_of(const Machine& m) {
  const uint64_t slots = m.record.slots;
  return m.limit == 0 ? slots : std::min(slots, m.limit);
}

MachineState state_of(const Machine& machine) {
  if (is_gone(machine)) return MachineState::kGone;
  if (machine.silent) return MachineState::kSilent;
  const uint64_t taken = places_taken(machine) + (machine.promised_to != nullptr ? 1 : 0);
  const bool free_slot = taken < places_of(machine) && room_of(machine).cores > 0;
  const bool takes_jobs = machine.away && free_slot && !machine.record.draining;
  return takes_jobs ? MachineState::kIdle : MachineState::kBusy;
}

MachineBook::MachineBook(const Parameters& parameters, Matcher& matcher, Deadlines& due,
                         Changes& changes)
    : lease_(parameters.lease),
      refusal_pause_(parameters.refusal_pause),
      rest_least_(parameters.rest_least),
      rest_most_(parameters.rest_most),
      limits_(parse_machine_limits(parameters.most_per_machine).value_or(MachineLimits())),
      matcher_(matcher),
      due_(due),
      changes_(changes) {}

Machine* MachineBook::find(MachineId id) {
  const auto it = machines_.find(id);
  return it == machines_.end() ? nullptr : &it->second;
}
const Machine* MachineBook::find(MachineId id) const {
  return const_cast<MachineBook*>(this)->find(id);
}

std::optional<MachineId> MachineBook::named(std::string_view name) const {
  const auto it = names_.find(std::string(name));
  if (it == names_.end()) return std::nullopt;
  return it->second;
}

void MachineBook::requeue(Machine& machine, bool to_tail) {
  matcher_.promises().note(machine);
  matcher_.idle().update(machine, to_tail, changes_.now());
}

void MachineBook::take_from_idle(Machine& machine) {
  matcher_.promises().note(machine);
  matcher_.idle().remove(machine);
}

void MachineBook::note_promise(Machine& machine) {
  matcher_.idle().update(machine, false, changes_.now());
  touched_.add(machine);
}

void MachineBook::note_owner(Machine& machine, bool away, bool owner_away) {
  machine.away = away;
  if (owner_away == is_owner_away(machine)) return;
  machine.away_since = owner_away ? changes_.now() : 0;
  find_similar_absences(machine);
}

rules::LocalTime MachineBook::left_at(const Machine& machine) const {
  return rules::local_time(machine.away_since, changes_.counters().utc_offset);
}

void MachineBook::find_similar_absences(Machine& machine) {
  machine.similar =
      is_owner_away(machine) ? machine.absences.similar_to(left_at(machine)) : SimilarAbsences();
}

void MachineBook::note_local_time() {
  for (Machine* machine : by_id_) find_similar_absences(*machine);
}

void MachineBook::schedule(Machine& machine) {
  Micros next = 0;
  const auto also = [&next](Micros due) {
    if (due != 0 && (next == 0 || due < next)) next = due;
  };
  if (!is_gone(machine) && !machine.silent) next = machine.last_contact + lease_;
  also(machine.paused_until);
  if (!is_gone(machine)) also(machine.record.failures.rests_until);
  due_.set(machine, next);
}

Machine& MachineBook::enter(MachineId id) {
  const auto [entry, made] = machines_.try_emplace(id);
  Machine& machine = entry->second;
  if (!made) return machine;
  machine.record.id = id;
  const auto before = [](const Machine* a, const Machine* b) {
    return a->record.id < b->record.id;
  };
  by_id_.insert(std::upper_bound(by_id_.begin(), by_id_.end(), &machine, before), &machine);
  return machine;
}

Machine* MachineBook::join(const MachineJoined& event) {
  MachineId id = event.machine;
  if (id == 0) {
    id = changes_.take_machine_id();
  } else if (find(id) == nullptr) {
    return nullptr;
  }
  Machine& m = enter(id);
  take_from_idle(m);
  const auto old_name = names_.find(m.record.name);
  if (old_name != names_.end() && old_name->second == id) names_.erase(old_name);
  m.due_kind = Timed::Kind::kMachine;
  m.due_id = id;
  m.record = {id,
              event.name,
              event.os,
              event.architecture,
              event.cores,
              event.slots,
              event.memory,
              event.disk + m.used.disk,  // what its attempts use is not free there
              MachineState::kBusy,
              changes_.now(),
              m.record.draining,
              event.resources,
              m.record.failures,
              m.record.speed};
  m.limit = limits_.of(event.name);
  m.ahead.most = m.ahead.short_runs = 0;
  matcher_.set_kind(m);
  note_owner(m, false, false);
  m.owner_seen = false;
  m.silent = false;
  m.memory_free = 0;
  m.disk_free = event.disk;
  m.load = 0;
  m.paused_until = 0;
  ++m.registration;
  names_[event.name] = id;
  note_contact(m);
  m.rewritten = true;
  touched_.add(m);
  return &m;
}

void MachineBook::report(Machine& m, const MachineReported& report) {
  const bool owner_away = report.away || report.owner_away;
  if (!owner_away && is_owner_away(m) && m.owner_seen) {
    m.absences.add(left_at(m), changes_.now() - m.away_since);
    m.owner_returned = true;
  }
  note_owner(m, report.away, owner_away);
  m.owner_seen |= !owner_away;
  m.memory_free = report.memory_free;
  m.disk_free = report.disk_free;
  m.load = report.load;
  m.ahead.most = report.ahead;
  m.ahead.short_runs = std::min(m.ahead.short_runs, report.ahead);
  if (report.speed > 0 && report.speed != m.record.speed) {
    m.record.speed = report.speed;
    m.rewritten = true;
  }
  m.paused_until = 0;  // the reason for the refusal may no longer hold
  m.silent = false;
  note_contact(m);
  requeue(m, false);
  touched_.add(m);
}

void MachineBook::withdraw(Machine& m) {
  note_owner(m, false, false);
  m.owner_seen = false;
  m.silent = false;
  m.paused_until = 0;
  m.record.state = MachineState::kGone;
  m.record.state_since = changes_.now();
  m.rewritten = true;
  take_from_idle(m);
  schedule(m);
  touched_.add(m);
}

bool MachineBook::drain(Machine& m, bool drained) {
  const bool wakes = !drained && rests(m);
  if (m.record.draining == drained && !wakes) return false;
  m.record.draining = drained;
  set_failures(m, drained ? m.record.failures : MachineFailures());
  return true;
}

void MachineBook::note_contact(Machine& machine) {
  machine.last_contact = changes_.now();
  if (machine.silent) {
    machine.silent = false;
    requeue(machine, false);
    touched_.add(machine);
  }
  schedule(machine);
}

void MachineBook::pause(Machine& machine) {
  if (is_gone(machine)) return;
  machine.paused_until = changes_.now() + refusal_pause_;
  schedule(machine);
}

// As after refusals of a job, the first few may be chance.
Micros MachineBook::rest_after(uint32_t failures) const {
  constexpr uint32_t kFailuresAtOnce = 3;
  if (failures < kFailuresAtOnce) return 0;
  return std::min(rest_least_ << std::min(failures - kFailuresAtOnce, 16u), rest_most_);
}

void MachineBook::note_failure(Machine& m, Micros decided, const std::string& reason) {
  const MachineFailures& before = m.record.failures;
  if (decided < before.last) return;
  MachineFailures failures = before;
  failures.count += before.count < std::numeric_limits<uint32_t>::max();
  failures.last = changes_.now();
  failures.reason = reason;
  const Micros rest = rest_after(failures.count);
  failures.rests_until = rest == 0 ? 0 : changes_.now() + rest;
  set_failures(m, std::move(failures));
}

bool MachineBook::note_unstarted(Machine& m, const std::string& user) {
  MachineFailures failures = m.record.failures;
  const bool known = (failures.unstarted > 0 && user == failures.unstarted_first) ||
                     (failures.unstarted > 1 && user == failures.unstarted_second);
  if (!known && failures.unstarted < kUsersAtFault) {
    if (failures.unstarted == 0) failures.unstarted_first = user;
    if (failures.unstarted == 1) failures.unstarted_second = user;
    ++failures.unstarted;
    set_failures(m, failures);
  }
  return failures.unstarted >= kUsersAtFault;
}

void MachineBook::note_success(Machine& m, Micros decided) {
  const MachineFailures& before = m.record.failures;
  if (before != MachineFailures() && decided >= before.last) set_failures(m, {});
}

void MachineBook::set_failures(Machine& m, MachineFailures failures) {
  m.record.failures = std::move(failures);
  m.rewritten = true;
  requeue(m, false);
  schedule(m);
  touched_.add(m);
}

void MachineBook::note_slots(Machine& machine, bool freed) {
  requeue(machine, freed);
  touched_.add(machine);
}

void MachineBook::check(Machine& m) {
  const Micros now = changes_.now();
  if (m.paused_until != 0 && m.paused_until <= now) m.paused_until = 0;
  if (rests(m) && m.record.failures.rests_until <= now) {
    m.record.failures.rests_until = 0;
    m.rewritten = true;
  }
  if (!m.silent && m.last_contact + lease_ <= now) {
    m.silent = true;
    m.owner_seen = false;  // he may come and go
  }
  requeue(m, false);
  schedule(m);
  touched_.add(m);
}

void MachineBook::restart() {
  for (Machine* machine : by_id_) {
    Machine& m = *machine;
    m.load = 0;
    m.granted = 0;                          // before this server was there
    m.ahead.most = m.ahead.short_runs = 0;  // until it reports
    m.ahead.last_end = 0;
    m.ahead.turns = 0;
    if (is_gone(m)) continue;
    take_from_idle(m);
    note_owner(m, false, false);
    m.owner_seen = false;
    m.silent = false;
    m.memory_free = 0;
    m.disk_free = m.record.disk;
    m.paused_until = 0;
    m.last_contact = changes_.now();
    schedule(m);
    touched_.add(m);
  }
}

void MachineBook::anchor(Machine& m, const Anchored::MachineNow& known) {
  take_from_idle(m);
  m.away = known.away;
  m.away_since = known.away_since;
  m.owner_seen = known.owner_seen;
  find_similar_absences(m);
  m.silent = known.silent;
  m.memory_free = known.memory_free;
  m.disk_free = known.disk_free;
  m.load = known.load;
  m.granted = known.granted;
  m.last_contact = known.last_contact;
  m.paused_until = known.paused_until;
  m.registration = known.registration;
  m.ahead.most = known.ahead_most;
  m.ahead.short_runs = known.short_runs;
  m.ahead.last_end = known.last_end;
  m.ahead.turns = known.turns;
  schedule(m);
}

bool MachineBook::restore(const MachineRecord& row) {
  if (row.id == 0 || machines_.contains(row.id)) return false;
  Machine& m = enter(row.id);
  m.due_kind = Timed::Kind::kMachine;
  m.due_id = row.id;
  m.record = row;
  m.limit = limits_.of(row.name);
  matcher_.set_kind(m);
  m.disk_free = row.disk;
  m.last_contact = changes_.now();
  m.silent = row.state == MachineState::kSilent;
  const auto [name, made] = names_.try_emplace(row.name, row.id);
  if (!made && row.state != MachineState::kGone) name->second = row.id;
  schedule(m);
  return true;
}

bool MachineBook::restore(const AbsenceRecord& row) {
  Machine* m = find(row.machine);
  const auto absences = Absences::parse(row.absences);
  if (m == nullptr || !absences) return false;
  m->absences = *absences;
  return true;
}

void MachineBook::set_limits(const std::string& limits) {
  limits_ = parse_machine_limits(limits).value_or(MachineLimits());
  for (Machine* machine : by_id_) {
    Machine& m = *machine;
    const uint64_t limit = limits_.of(m.record.name);
    if (limit == m.limit) continue;
    m.limit = limit;
    requeue(m, false);
    touched_.add(m);
  }
}

void MachineBook::emit() {
  for (Machine* machine : touched_.all()) {
    const MachineState state = state_of(*machine);
    if (state != machine->record.state) {
      machine->record.state = state;
      machine->record.state_since = changes_.now();
      machine->rewritten = true;
    }
    if (machine->rewritten) changes_.add(machine->record);
    machine->rewritten = false;
    if (machine->owner_returned)
      changes_.add(AbsenceRecord{machine->record.id, machine->absences.text()});
    machine->owner_returned = false;
  }
  touched_.clear();
}

}  // namespace sublet::scheduling
