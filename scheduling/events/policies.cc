// Other policies take over while the brain runs.
#include "scheduling/state.h"

namespace sublet::scheduling {

void Pool::State::on(const PolicySet& event) {
  changes.answer().accepted = problem_with(event.choice).empty();
  if (changes.answer().accepted) switch_policies(event.choice, event.by);
}

void Pool::State::switch_policies(const PolicyChoice& choice, const std::string& by) {
  if (policy.choice == choice && policy.by == by && policy.since != 0) return;
  adopt({choice, changes.now(), by});
  if (policies.job->wants_draws()) ledger.begin_draws();
  changes.add(policy);
}

void Pool::State::adopt(const PolicyRecord& stored) {
  const bool same = policy.choice == stored.choice;
  policy = stored;
  if (same) return;
  static_cast<PolicyChoice&>(parameters) = stored.choice;
  ledger.set_half_life(parameters.half_life);
  ledger.set_throttle(parameters.throttle, parameters.throttle_span);
  ledger.end_spans(changes.now());  // of those that are shorter now, some are over
  ledger.set_limit(parameters.most_per_user);
  machines.set_limits(parameters.most_per_machine);
  for (const Machine* machine : machines.all())
    if (machine->ahead.held > 0) settle_ahead(*machines.find(machine->record.id));
  policies = make_policies(parameters, ledger, programs);
  jobs.follow(parameters);
}

}  // namespace sublet::scheduling
