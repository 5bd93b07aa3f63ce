// Fair share, both levels, as pure functions: formulas 3.1 to 3.4 of the source as
// interpreted in docs/fair-share.md. CPU in seconds.
#ifndef SUBLET_SCHEDULING_FAIR_SHARE_H_
#define SUBLET_SCHEDULING_FAIR_SHARE_H_

#include "scheduling/events/events.h"
#include "scheduling/records.h"
#include "scheduling/types.h"

namespace sublet::scheduling {

// K1: the factor by which one tick reduces a usage. Both spans positive.
double decay_per_tick(Micros tick, Micros half_life);

// (3.1) usage * K1 + charges; the caller sets the charges to 0 (3.2). A result below
// kLeastUsage is set to 0, so that an inactive user costs nothing.
inline constexpr double kLeastUsage = 1e-9;
double usage_after_tick(double usage, double charges, double k1);
// (3.1) for `ticks` at once, at least 1: the charges were made before the first of them,
// and none since.
double usage_after_ticks(double usage, double charges, double k1, int64_t ticks);

// What (3.4) adds to the priority of a job that returns unfinished: usage *
// active / shares^2. `active`: the user's jobs in the queue, this one included.
double priority_step(double usage, uint64_t active, double shares);

// How much of a finished attempt's CPU time was kept, lost and charged (the
// cost of 3.3). used = kept + lost.
struct Cost {
  Micros used = 0;
  Micros kept = 0;
  Micros lost = 0;
  Micros charged = 0;
  bool in_full = false;  // all that was used is charged, even if that is nothing
};
// `saved`: the part of `cpu` saved in the newest checkpoint; -1: no checkpoint.
Cost cost_of(EndReason ended, Micros cpu, Micros saved, bool charge_all);

// Limits a workstation's report to what is possible: an attempt cannot have used more
// CPU time than `cores` provided since it was decided. `now`: of the report.
void limit_cost(AttemptEnded& end, Micros decided, uint32_t cores, Micros now);

// Priorities of waiting jobs drift towards 0 with a half-life. A priority is stored as
// its value at an instant; since all drift at the same rate, their order does not
// change and the queue need not be re-sorted.
class Drift {
 public:
  Drift(bool on, Micros half_life) : on_(on), half_life_(static_cast<double>(half_life)) {}
  // The priority at `now` that was `value` at `since`.
  double value_at(double value, Micros since, Micros now) const;
  // A time-independent sort key: smaller is better.
  double order(double value, Micros since) const;

 private:
  bool on_;
  double half_life_;
};

// (3.4), kept for every job under every policy, so that another policy may be chosen later.
class SharePriority {
 public:
  explicit SharePriority(const Parameters& parameters)
      : drift_(parameters.drift, parameters.half_life),
        initial_zero_(parameters.initial_priority_zero) {}
  // The job was submitted; or it returns unfinished, and waits or is held. `waiting`: the user's
  // waiting jobs, this one among them if it waits.
  void submitted(JobRecord& job, const UserRecord& user, uint64_t waiting, Micros now) const;
  void returned(JobRecord& job, const UserRecord& user, uint64_t waiting, Micros now) const;

 private:
  Drift drift_;
  bool initial_zero_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_FAIR_SHARE_H_
