// The parameters of the brain's policies.
#ifndef SUBLET_SCHEDULING_PARAMETERS_H_
#define SUBLET_SCHEDULING_PARAMETERS_H_

#include <string>

#include "scheduling/types.h"

namespace sublet::scheduling {

// Which policies decide, and how: what may change while the brain runs (PolicySet). Each is a
// setting of the server.
//
// Another half_life counts for usage from the next tick on, and for the drift of waiting
// priorities from their instants on: it changes no record.
struct PolicyChoice {
  std::string job_policy = "fair-share";       // which job next
  std::string machine_policy = "fifo-idle";    // which machine
  std::string victim_policy = "none";          // who gives way
  uint64_t candidates = 64;                    // machines that are compared for a job
  Micros half_life = 24 * 3600ll * 1'000'000;  // of usage; K1 = 2^(-t1 / half_life)
  // fair-share: the guaranteed fraction of the cores due to a user; 0: no guarantee.
  double floor = 0.25;
  bool cost_cpu = false;  // fair-share: CPU time alone counts, not the time of cores held
  bool initial_priority_zero = false;  // a new job starts at 0 instead of usage*active/shares^2
  bool turns_by_machine = false;       // fair-share-1998: take the best job of the host at the
                                       // head of REQUESTING instead of the best job of all
  bool charge_all = false;             // charge lost work too
  bool drift = true;                   // waiting priorities decay with the half-life of usage
  // At most so many places are given to a user within a span that begins with the first of them.
  uint64_t throttle = 0;  // 0: any number
  Micros throttle_span = 1'000'000;
  // After waiting for so long, a job that a machine has no room for now is promised a place there.
  Micros wide_wait = 600'000'000;
  // Of the pool: rules::NamedAmounts::text(). A name that is here is nothing that a machine offers.
  std::string licences = {};
  // At most so many attempts of one user are on machines at a time; 0: any number.
  uint64_t most_per_user = 0;
  // At most so many attempts of all users are on a machine at a time, beside what its owner allows
  // (MachineLimits::text).
  std::string most_per_machine = {};
  bool operator==(const PolicyChoice&) const = default;
};

// All parameters. The others are settings of the server, too, but fixed while it runs: the
// Alarm Sender counts the ticks, leases and pauses have begun, clients were told the lease,
// users have their shares, and the books are kept by account. Spans in microseconds.
struct Parameters : PolicyChoice {
  Micros tick = 60'000'000;  // t1: period of the Alarm Sender
  double default_shares = 1;
  Micros lease = 30'000'000;         // D
  Micros leaving_wait = 60'000'000;  // for an announced checkpoint; then the older one is used
  Micros refusal_pause = 1'000'000;  // a machine that refused gets no order for this long,
                                     // unless it reports itself again
  // A machine that fails again and again rests, first for the least span, which doubles with each
  // further failure up to the most; least 0: it does not rest.
  Micros rest_least = 300'000'000;
  Micros rest_most = 3'600'000'000;
  // Behind attempts that end within short_run, others are placed ahead of time (events/ahead.cc).
  // One that has waited there for ahead_wait, with nothing ending before it, is called back. One
  // that still waits there ahead_return later is no longer renewed.
  Micros short_run = 50'000;
  Micros ahead_wait = 100'000;
  Micros ahead_return = 60'000'000;
  // Who shares an account with whom: Accounts::text(). Each job that is live when the server starts
  // counts for the account that its user has then; what was counted before stays where it was.
  std::string accounts = {};
  bool operator==(const Parameters&) const = default;
};

// Whether they are alike in all but what may change.
bool same_when_fixed(const Parameters& a, const Parameters& b);

// Why no brain can run with these, with the known names if one is not known; "": it can.
std::string problem_with(const PolicyChoice& choice);
std::string problem_with(const Parameters& parameters);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_PARAMETERS_H_
