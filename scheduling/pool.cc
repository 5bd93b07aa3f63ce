#include "scheduling/pool.h"

#include <algorithm>
#include <stdexcept>

#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {
void check(const Parameters& p) {
  if (p.job_policy != "fair-share") {
    throw std::invalid_argument("job_policy '" + p.job_policy +
                                "' is not known; known: fair-share");
  }
  if (p.machine_policy != "fifo-idle") {
    throw std::invalid_argument("machine_policy '" + p.machine_policy +
                                "' is not known; known: fifo-idle");
  }
  if (p.tick <= 0 || p.half_life <= 0 || p.lease <= 0) {
    throw std::invalid_argument("tick, half_life and lease must be positive");
  }
  if (p.leaving_wait < 0 || p.refusal_pause < 0) {
    throw std::invalid_argument("leaving_wait and refusal_pause must not be negative");
  }
  if (!(p.default_shares > 0)) throw std::invalid_argument("default_shares must be positive");
}
}  // namespace

Pool::State::State(const Parameters& p)
    : parameters(p),
      k1(decay_per_tick(p.tick, p.half_life)),
      drift(p.drift, p.half_life),
      queue(p.turns_by_machine) {}

Pool::Pool(const Parameters& parameters) {
  check(parameters);
  state_ = std::make_unique<State>(parameters);
}
Pool::~Pool() = default;

Outcome Pool::apply(const Event& event, Micros now) {
  State& s = *state_;
  s.now = std::max({now, s.pool.now, Micros{1}});  // 0 means "not set"
  s.pool.now = s.now;
  s.outcome = Outcome();
  s.outcome.records.reserve(8);
  s.end_backoffs();
  std::visit([&s](const auto& e) { s.on(e); }, event);
  s.allocate();
  s.emit();
  return std::move(s.outcome);
}

std::optional<Micros> Pool::next_deadline() const {
  std::optional<Micros> next;
  for (const DueHeap* heap : {&state_->due, &state_->backing_off}) {
    if (heap->empty()) continue;
    next = std::min(next.value_or(heap->top()->due), heap->top()->due);
  }
  return next;
}

void Pool::State::touch(Job& job) {
  if (!job.touched) touched_jobs.push_back(&job);
  job.touched = true;
}
void Pool::State::touch(Attempt& attempt) {
  if (!attempt.touched) touched_attempts.push_back(attempt.record.key.job);
  attempt.touched = true;
}
void Pool::State::touch(Machine& machine) {
  if (!machine.touched) touched_machines.push_back(&machine);
  machine.touched = true;
}
void Pool::State::touch(Batch& batch) {
  if (!batch.touched) touched_batches.push_back(&batch);
  batch.touched = true;
}
void Pool::State::touch(User& user) {
  if (!user.touched) touched_users.push_back(&user);
  user.touched = true;
}

// Emits one record for each subject that this apply has changed, in its final state;
// the pool's record comes last. Attempt ends, uses and state changes have been
// emitted when they happened.
void Pool::State::emit() {
  std::vector<Record>& records = outcome.records;
  for (Machine* machine : touched_machines) {
    const MachineState state = state_of(*machine);
    if (state != machine->record.state) {
      machine->record.state = state;
      machine->record.state_since = now;
      machine->rewritten = true;
    }
    if (machine->rewritten) records.emplace_back(machine->record);
    machine->touched = machine->rewritten = false;
  }
  for (User* user : touched_users) {
    user->touched = false;
    records.emplace_back(user->record);
  }
  for (Job* job : touched_jobs) records.emplace_back(job->record);
  for (Batch* batch : touched_batches) {
    batch->touched = false;
    records.emplace_back(batch->record);
  }
  for (const JobId id : touched_attempts) {
    // An attempt that has ended was emitted then. One that is untouched is a newer
    // attempt of the job, or was emitted by an earlier entry of this list.
    Attempt* attempt = live_attempt(id);
    if (attempt == nullptr || !attempt->touched) continue;
    attempt->touched = false;
    records.emplace_back(attempt->record);
  }
  erase_final_jobs();
  forget_spare_groups();
  spare_users.insert(spare_users.end(), touched_users.begin(), touched_users.end());
  forget_spare_users();
  touched_machines.clear();
  touched_users.clear();
  touched_batches.clear();
  touched_jobs.clear();
  touched_attempts.clear();
  if (pool.next_job != stored_pool.next_job || pool.next_batch != stored_pool.next_batch ||
      pool.next_machine != stored_pool.next_machine ||
      pool.next_change != stored_pool.next_change || pool.last_tick != stored_pool.last_tick) {
    records.emplace_back(pool);
    stored_pool = pool;
  }
}

}  // namespace sublet::scheduling
