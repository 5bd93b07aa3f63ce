#include "scheduling/books/attempt_book.h"

#include <algorithm>
#include <utility>

#include "protocol/lease.h"
#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"

namespace sublet::scheduling {
namespace {
void occupy(Machine& machine, JobId id) {
  machine.running.insert(std::lower_bound(machine.running.begin(), machine.running.end(), id), id);
}
}  // namespace

AttemptBook::AttemptBook(const Parameters& parameters, Deadlines& due, Changes& changes)
    : lease_(parameters.lease),
      leaving_wait_(parameters.leaving_wait),
      due_(due),
      changes_(changes) {}

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

Attempt& AttemptBook::open(Job& job, Machine& machine, std::string reason) {
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
  attempt.user = job.user;
  ++job.user->attempts;
  attempt.batch = job.record.batch;
  attempt.registration = machine.registration;
  attempt.memory_offered = memory_offered(machine);
  occupy(machine, id);
  renew(attempt);
  touch(attempt);
  return attempt;
}

Attempt AttemptBook::close(Attempt& attempt) {
  const JobId id = attempt.record.key.job;
  due_.set(attempt, 0);
  std::erase(attempt.machine->running, id);
  if (attempt.user != nullptr) --attempt.user->attempts;
  return std::move(attempts_.extract(id).mapped());
}

void AttemptBook::renew(Attempt& attempt) {
  attempt.receipt = changes_.now();
  due_.set(attempt, reassign_at(attempt));
}

void AttemptBook::restart() {
  for (auto& [id, attempt] : attempts_) {
    attempt.delivered = 0;
    attempt.memory_offered = 0;
    // As in a restored brain: of the current registration, until the machine registers again.
    attempt.registration = attempt.machine->registration;
    renew(attempt);
  }
}

void AttemptBook::anchor(Attempt& attempt, const Anchored::AttemptNow& known) {
  attempt.receipt = known.receipt;
  attempt.registration = known.registration;
  attempt.delivered = known.delivered;
  attempt.memory_offered = known.memory_offered;
  due_.set(attempt, reassign_at(attempt));
}

bool AttemptBook::restore(const AttemptRecord& row, Machine& machine, Job* job, User* user,
                          BatchId batch) {
  const auto [it, made] = attempts_.try_emplace(row.key.job);
  if (!made) return false;
  Attempt& attempt = it->second;
  attempt.record = row;
  attempt.due_id = row.key.job;
  attempt.machine = &machine;
  attempt.job = job;
  attempt.user = user;
  if (user != nullptr) ++user->attempts;
  attempt.batch = batch;
  occupy(machine, row.key.job);
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
