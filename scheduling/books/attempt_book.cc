#include "scheduling/books/attempt_book.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "protocol/attempt.h"
#include "protocol/lease.h"
#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"

namespace sublet::scheduling {

AttemptBook::AttemptBook(const Parameters& parameters, Ledger& ledger, LicenceBook& licences,
                         Deadlines& due, Changes& changes)
    : lease_(parameters.lease),
      leaving_wait_(parameters.leaving_wait),
      ahead_wait_(parameters.ahead_wait),
      ahead_return_(parameters.ahead_return),
      ledger_(ledger),
      licences_(licences),
      due_(due),
      changes_(changes) {}

void AttemptBook::occupy(Attempt& attempt) {
  Machine& machine = *attempt.machine;
  const JobId id = attempt.record.key.job;
  machine.running.insert(std::lower_bound(machine.running.begin(), machine.running.end(), id), id);
  if (attempt.ahead) {
    ++machine.ahead.held;
  } else {
    reserve(attempt);
  }
}

void AttemptBook::vacate(Attempt& attempt) {
  Machine& machine = *attempt.machine;
  std::erase(machine.running, attempt.record.key.job);
  if (attempt.ahead) {
    --machine.ahead.held;
  } else {
    release(attempt);
  }
}

void AttemptBook::reserve(Attempt& attempt) {
  Machine& machine = *attempt.machine;
  machine.reserved = machine.reserved + attempt.reserved;
  if (attempt.user != nullptr)
    ledger_.hold(*attempt.user, static_cast<int64_t>(attempt.reserved.cores));
  machine.named_reserved.add(attempt.named);
  licences_.reserve(attempt.named);
}

void AttemptBook::release(Attempt& attempt) {
  Machine& machine = *attempt.machine;
  machine.reserved = machine.reserved - attempt.reserved;
  if (attempt.user != nullptr)
    ledger_.hold(*attempt.user, -static_cast<int64_t>(attempt.reserved.cores));
  machine.used = machine.used - attempt.used;
  machine.named_reserved.take(attempt.named);
  licences_.release(attempt.named);
}

Attempt* AttemptBook::find(JobId id) {
  const auto it = attempts_.find(id);
  return it == attempts_.end() ? nullptr : &it->second;
}
const Attempt* AttemptBook::find(JobId id) const {
  return const_cast<AttemptBook*>(this)->find(id);
}

Attempt* AttemptBook::present(const AttemptKey& key, MachineId machine) {
  Attempt* attempt = find(key.job);
  const bool same =
      attempt != nullptr && attempt->record.key == key && attempt->machine->record.id == machine;
  return same ? attempt : nullptr;
}

Micros AttemptBook::reassign_at(const Attempt& attempt) const {
  return attempt.receipt + protocol::reassign_delay_us(lease_);
}

bool AttemptBook::waited_long_enough(const Attempt& attempt) const {
  const Micros since = attempt.record.leaving_since;
  return since != 0 && changes_.now() >= since + leaving_wait_;
}

// Those first that have begun, then in the order of their placing, in which the machine starts
// them.
std::vector<Attempt*> AttemptBook::in_turn(const Machine& machine) {
  std::vector<Attempt*> all;
  for (const JobId id : machine.running) all.push_back(find(id));
  std::sort(all.begin(), all.end(), [](const Attempt* a, const Attempt* b) {
    const auto key = [](const Attempt& one) {
      return std::tuple(one.record.started == 0, one.turn, one.record.decided, one.record.key.job);
    };
    return key(*a) < key(*b);
  });
  return all;
}

void AttemptBook::take_places(Machine& machine) {
  if (machine.ahead.held == 0) return;
  const uint64_t promised = machine.promised_to != nullptr ? 1 : 0;
  for (Attempt* attempt : in_turn(machine)) {
    if (places_taken(machine) + promised >= places_of(machine)) return;
    if (!attempt->ahead) continue;
    set_ahead(*attempt, false);
    // Its machine says only after a while that it has started.
    if (attempt->record.started == 0)
      wait_ahead(*attempt, changes_.now() + ahead_wait_ + protocol::kStartToldAfterMs * 1'000);
  }
}

void AttemptBook::set_ahead(Attempt& attempt, bool ahead) {
  if (attempt.ahead == ahead) return;
  attempt.ahead = ahead;
  if (ahead) {
    release(attempt);
    ++attempt.machine->ahead.held;
  } else {
    reserve(attempt);
    --attempt.machine->ahead.held;
  }
}

void AttemptBook::wait_ahead(Attempt& attempt, Micros until) {
  if (until == 0) attempt.called_back = 0;
  if (attempt.ahead_until == until) return;
  attempt.ahead_until = until;
  schedule(attempt);
}

void AttemptBook::call_back(Attempt& attempt) {
  if (attempt.called_back == 0) attempt.called_back = changes_.now();
  wait_ahead(attempt, changes_.now() + lease_);
}

bool AttemptBook::is_overdue(const Attempt& attempt) const {
  return attempt.called_back != 0 && changes_.now() >= attempt.called_back + ahead_return_;
}

Attempt& AttemptBook::open(Job& job, Machine& machine, Sentence reason, Micros ahead_until) {
  const JobId id = job.record.id;
  Attempt& attempt = attempts_[id];
  AttemptRecord& record = attempt.record;
  record.key = {id, ++job.record.attempts};
  record.machine = machine.record.id;
  record.reason = std::move(reason);
  record.decided = changes_.now();
  record.resumed_generation = job.record.generation;
  record.ready = job.record.changed;
  attempt.due_id = id;
  attempt.machine = &machine;
  attempt.job = &job;
  attempt.batch = job.record.batch;
  attempt.reserved = amounts_of(job.record.needs);
  attempt.named = rules::NamedAmounts::stored(job.record.needs.resources);
  attempt.submitter = job.record.user;
  belong(attempt, *job.user);
  attempt.registration = machine.registration;
  attempt.memory_offered = room_of(machine).memory;
  attempt.ahead = attempt.placed_ahead = ahead_until != 0;
  attempt.ahead_until = ahead_until;
  attempt.turn = attempt.ahead ? ++machine.ahead.turns : 0;
  if (attempt.ahead) attempt.memory_offered += attempt.reserved.memory;  // which another has now
  occupy(attempt);
  machine.granted = changes_.now();
  renew(attempt);
  touch(attempt);
  return attempt;
}

Attempt AttemptBook::close(Attempt& attempt) {
  const JobId id = attempt.record.key.job;
  due_.set(attempt, 0);
  vacate(attempt);
  attempt.machine->granted = 0;
  if (attempt.user != nullptr) {
    --attempt.user->attempts;
    if (attempt.record.preempted_for != 0) attempt.user->yielding -= attempt.reserved.cores;
    ledger_.note_attempts(*attempt.user);
  }
  return std::move(attempts_.extract(id).mapped());
}

void AttemptBook::give_up(Attempt& attempt, JobId job, std::string why) {
  attempt.record.preempted_for = job;
  attempt.record.reason = std::move(why);
  attempt.user->yielding += attempt.reserved.cores;
  touch(attempt);
}

void AttemptBook::belong(Attempt& attempt, User& user) {
  attempt.user = &user;
  ++user.attempts;
  if (attempt.record.preempted_for != 0) user.yielding += attempt.reserved.cores;
  ledger_.note_attempts(user);
}

void AttemptBook::charge_running(Attempt& attempt, Micros most) {
  if (attempt.user == nullptr) return;
  AttemptRecord& record = attempt.record;
  const Micros ran = std::clamp<Micros>(changes_.now() - record.charged_until, 0, most);
  const Micros held = ran * static_cast<Micros>(attempt.reserved.cores);
  record.charged_until = changes_.now();
  record.charged += held;
  record.charged_new += held;
  record.charged_left += static_cast<double>(held);
  ledger_.charge(*attempt.user, held);
  touch(attempt);
}

void AttemptBook::decay(const Ledger::Decay& kept) {
  // In the order of ids, so that equal histories give equal outcomes.
  std::vector<Attempt*> charged;
  for (auto& [id, attempt] : attempts_)
    if (attempt.record.charged > 0) charged.push_back(&attempt);
  std::sort(charged.begin(), charged.end(), [](const Attempt* a, const Attempt* b) {
    return a->record.key.job < b->record.key.job;
  });
  for (Attempt* attempt : charged) {
    AttemptRecord& record = attempt->record;
    const double added = static_cast<double>(std::exchange(record.charged_new, 0));
    record.charged_left = (record.charged_left - added) * kept.usage + added * kept.charges;
    touch(*attempt);
  }
}

void AttemptBook::settle(Attempt& ended, Micros cost) {
  const AttemptRecord& record = ended.record;
  if (cost >= record.charged) return ledger_.charge(*ended.user, cost - record.charged);
  const double part =
      static_cast<double>(record.charged - cost) / static_cast<double>(record.charged);
  const double added = static_cast<double>(record.charged_new);
  ledger_.give_back(*ended.user, part * (record.charged_left - added), part * added);
}

bool AttemptBook::note_use(Attempt& attempt, const Amounts& used) {
  const Amounts reserved = attempt.ahead ? Amounts{} : least(used, attempt.reserved);
  if (reserved == attempt.used) return false;
  Amounts& of_all = attempt.machine->used;
  of_all = of_all - attempt.used + reserved;
  attempt.used = reserved;
  return true;
}

void AttemptBook::renew(Attempt& attempt) {
  attempt.receipt = changes_.now();
  schedule(attempt);
}

void AttemptBook::schedule(Attempt& attempt) {
  const Micros lost = reassign_at(attempt), recalled = attempt.ahead_until;
  due_.set(attempt, recalled != 0 ? std::min(lost, recalled) : lost);
}

void AttemptBook::restart() {
  ledger_.forget_owed_turns();
  std::set<const Machine*> machines;
  for (auto& [id, attempt] : attempts_) {
    machines.insert(attempt.machine);
    attempt.delivered = 0;
    attempt.memory_offered = 0;
    attempt.called_back = 0;
    note_use(attempt, {});
    // As in a restored brain: of the current registration, until the machine registers again.
    attempt.registration = attempt.machine->registration;
    renew(attempt);
  }
  for (const Machine* machine : machines) restore_places(*machine);
}

// By what is stored alone: those beyond the slots that are not known to have begun are ahead. If
// there are any, it may be another that has not begun: so all of those are called back, but not
// before their machine has had the time to say which it has started.
void AttemptBook::restore_places(const Machine& machine) {
  const auto may_be_ahead = [](const Attempt* attempt) {
    return attempt->record.started == 0 && attempt->named.empty();
  };
  for (const JobId id : machine.running) find(id)->turn = 0;
  const std::vector<Attempt*> all = in_turn(machine);
  const auto others = static_cast<uint64_t>(
      std::count_if(all.begin(), all.end(), [&](const Attempt* a) { return !may_be_ahead(a); }));
  uint64_t places = machine.record.slots - std::min<uint64_t>(machine.record.slots, others);
  for (Attempt* attempt : all) {
    const bool has_place = !may_be_ahead(attempt) || places > 0;
    if (may_be_ahead(attempt) && places > 0) --places;
    attempt->placed_ahead = !has_place;
    set_ahead(*attempt, !has_place);
    const bool may_wait = may_be_ahead(attempt) && all.size() > machine.record.slots;
    wait_ahead(*attempt, may_wait ? changes_.now() + lease_ : 0);
  }
}

void AttemptBook::anchor(Attempt& attempt, const Anchored::AttemptNow& known) {
  attempt.receipt = known.receipt;
  attempt.registration = known.registration;
  attempt.delivered = known.delivered;
  attempt.memory_offered = known.memory_offered;
  set_ahead(attempt, known.ahead);
  note_use(attempt, {0, known.memory_used, known.disk_used});
  attempt.placed_ahead = known.placed_ahead;
  attempt.turn = known.turn;
  attempt.ahead_until = known.ahead_until;
  attempt.called_back = known.called_back;
  schedule(attempt);
}

bool AttemptBook::restore(const AttemptRecord& row, Machine& machine, Job* job,
                          const JobRecord* of) {
  const auto [it, made] = attempts_.try_emplace(row.key.job);
  if (!made) return false;
  Attempt& attempt = it->second;
  attempt.record = row;
  attempt.due_id = row.key.job;
  attempt.machine = &machine;
  attempt.job = job;
  if (of != nullptr) {
    attempt.batch = of->batch;
    attempt.reserved = amounts_of(of->needs);
    attempt.named = rules::NamedAmounts::stored(of->needs.resources);
    attempt.submitter = of->user;
    belong(attempt, ledger_.counted_for(of->user));
  }
  occupy(attempt);
  renew(attempt);
  return true;
}

void AttemptBook::touch(Attempt& attempt) {
  if (!attempt.touched) touched_.push_back(attempt.record.key.job);
  attempt.touched = true;
}

void AttemptBook::emit() {
  for (const JobId id : touched_) {
    // An attempt that has ended was added then. One that is untouched is a newer attempt
    // of the job, or was added by an earlier entry of this list.
    Attempt* attempt = find(id);
    if (attempt == nullptr || !attempt->touched) continue;
    attempt->touched = false;
    changes_.add(attempt->record);
  }
  touched_.clear();
}

}  // namespace sublet::scheduling
