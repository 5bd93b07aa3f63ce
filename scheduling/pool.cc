#include "scheduling/pool.h"

#include <algorithm>
#include <stdexcept>

#include "scheduling/policies/job_policies.h"
#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {
std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void check(const Parameters& p) {
  const std::vector<std::string> known = known_job_policies();
  if (std::find(known.begin(), known.end(), p.job_policy) == known.end()) {
    throw std::invalid_argument("job_policy '" + p.job_policy +
                                "' is not known; known: " + list(known));
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
  if (!(p.floor >= 0 && p.floor <= 1)) throw std::invalid_argument("floor must be 0 to 1");
}
}  // namespace

Pool::State::State(const Parameters& p)
    : parameters(p),
      ledger(p),
      policies{make_job_policy(p, ledger)},
      matcher(policies, ledger),
      attempts(p, ledger, due, changes),
      jobs(p, ledger, matcher, attempts, policies, changes),
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
  matcher.forget_spare();
  ledger.forget_spare();
}

}  // namespace sublet::scheduling
