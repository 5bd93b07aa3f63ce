// The parameters of the brain's policies.
#ifndef SUBLET_SCHEDULING_PARAMETERS_H_
#define SUBLET_SCHEDULING_PARAMETERS_H_

#include <string>

#include "scheduling/types.h"

namespace sublet::scheduling {

// The parameters of the policies; each is a setting of the server with the same
// name. Spans in microseconds.
struct Parameters {
  std::string job_policy = "fair-share";       // which job next
  std::string machine_policy = "fifo-idle";    // which machine
  Micros tick = 60'000'000;                    // t1: period of the Alarm Sender
  Micros half_life = 24 * 3600ll * 1'000'000;  // of usage; K1 = 2^(-t1 / half_life)
  // fair-share: the guaranteed fraction of the cores due to a user; 0: no guarantee.
  double floor = 0.25;
  bool cost_cpu = false;  // fair-share: CPU time alone counts, not the time of cores held
  bool initial_priority_zero = false;  // a new job starts at 0 instead of usage*active/shares^2
  bool turns_by_machine = false;       // fair-share-1998: take the best job of the host at the
                                       // head of REQUESTING instead of the best job of all
  bool charge_all = false;             // charge lost work too
  bool drift = true;                   // waiting priorities decay with the half-life of usage
  double default_shares = 1;
  Micros lease = 30'000'000;         // D
  Micros leaving_wait = 60'000'000;  // for an announced checkpoint; then the older one is used
  Micros refusal_pause = 1'000'000;  // a machine that refused gets no order for this long,
                                     // unless it reports itself again
  bool operator==(const Parameters&) const = default;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_PARAMETERS_H_
