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
      ledger(p),
      matcher(p),
      attempts(p, due, changes),
      jobs(p, ledger, matcher, attempts, changes),
      machines(p, matcher, due, changes) {}

Pool::Pool(const Parameters& parameters) {
  check(parameters);
  state_ = std::make_unique<State>(parameters);
}
Pool::~Pool() = default;

Outcome Pool::apply(const Event& event, Micros now) {
  State& s = *state_;
  s.changes.begin(now);
  s.jobs.end_backoffs();
  std::visit([&s](const auto& e) { s.on(e); }, event);
  s.matcher.allocate([&s](Job& job, Machine& machine) { s.place(job, machine); });
  s.emit();
  return s.changes.finish();
}

std::optional<Micros> Pool::next_deadline() const {
  const std::optional<Micros> due = state_->due.next(), backoff = state_->jobs.next_backoff();
  if (!due || !backoff) return due ? due : backoff;
  return std::min(*due, *backoff);
}

// One record for each subject that this apply has changed, in its final state. Attempt ends,
// uses and state changes have been added when they happened.
void Pool::State::emit() {
  machines.emit();
  ledger.emit(changes);
  jobs.emit();
  attempts.emit();
  jobs.erase_final();
  matcher.forget_spare_groups();
  ledger.forget_spare();
}

}  // namespace sublet::scheduling
