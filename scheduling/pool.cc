#include "scheduling/pool.h"

#include <algorithm>
#include <stdexcept>

#include "scheduling/state.h"

namespace sublet::scheduling {
Pool::State::State(const Parameters& p)
    : parameters(p),
      policy{p, 0, ""},
      ledger(p),
      programs(changes),
      policies(make_policies(p, ledger, programs)),
      licences(p.licences),
      hours(changes),
      matcher(policies, ledger, licences, hours),
      attempts(p, ledger, licences, due, changes),
      relations(changes),
      jobs(p, ledger, matcher, attempts, relations, policies, changes),
      machines(p, matcher, due, changes) {}

Pool::Pool(const Parameters& parameters) {
  if (const std::string problem = problem_with(parameters); !problem.empty())
    throw std::invalid_argument(problem);
  state_ = std::make_unique<State>(parameters);
}
Pool::~Pool() = default;

Outcome Pool::apply(const Event& event, Micros now) {
  State& s = *state_;
  s.changes.begin(now);
  s.jobs.end_waits();
  s.ledger.end_spans(s.changes.now());
  std::visit([&s](const auto& e) { s.on(e); }, event);
  s.settle_relations();
  s.hours.update();  // after the event, which may tell the local time
  s.allocate();
  if (std::holds_alternative<Ticked>(event)) {
    s.preempt();
    s.allocate();
  }
  s.place_ahead();
  s.emit();
  return s.changes.finish();
}

std::optional<Micros> Pool::next_deadline() const {
  std::optional<Micros> soonest;
  std::optional<Micros> indices_due;
  if (const Micros due = state_->changes.counters().indices_due; due != 0) indices_due = due;
  for (const std::optional<Micros> due :
       {state_->due.next(), state_->jobs.next_end_of_wait(), state_->ledger.next_span_end(),
        state_->hours.next_change(), indices_due})
    if (due && (!soonest || *due < *soonest)) soonest = due;
  return soonest;
}

// One record for each subject that this apply has changed, in its final state. Attempt ends,
// uses and state changes have been added when they happened.
void Pool::State::emit() {
  machines.emit();
  ledger.emit(changes);
  jobs.emit();
  attempts.emit();
  relations.emit();
  jobs.erase_final();
  matcher.forget_spare();
  ledger.forget_spare();
}

}  // namespace sublet::scheduling
