#include "scheduling/matching/promises.h"

#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/matching/suitability.h"

namespace sublet::scheduling {

void Promises::make(Machine& machine, Job& job) {
  machine.promised_to = &job;
  job.promised = &machine;
  ++made_;
  job.user->promised += amounts_of(job.record.needs).cores;
  if (!job.demand->named.empty() || job.demand->hours != nullptr)
    of_restricted_[machine.record.id] = &machine;
}

void Promises::forget(Machine& machine) {
  if (machine.promised_to != nullptr) forget(*machine.promised_to);
}

void Promises::forget(Job& job) {
  if (job.promised == nullptr) return;
  Machine& machine = *job.promised;
  job.user->promised -= amounts_of(job.record.needs).cores;
  job.promised = nullptr;
  --made_;
  machine.promised_to = nullptr;
  of_restricted_.erase(machine.record.id);
  changed_.emplace(machine.record.id, &machine);
}

void Promises::note(Machine& machine) {
  if (machine.promised_to != nullptr) changed_.emplace(machine.record.id, &machine);
}

Machine* Promises::take_changed() {
  if (changed_.empty()) return nullptr;
  Machine* machine = changed_.begin()->second;
  changed_.erase(changed_.begin());
  return machine;
}

}  // namespace sublet::scheduling
