#include "scheduling/fair_share.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sublet::scheduling {

double decay_per_tick(Micros tick, Micros half_life) {
  return std::exp2(-static_cast<double>(tick) / static_cast<double>(half_life));
}

double usage_after_tick(double usage, double charges, double k1) {
  const double next = usage * k1 + charges;
  return next < kLeastUsage ? 0 : next;
}

double usage_after_ticks(double usage, double charges, double k1, int64_t ticks) {
  const double first = usage_after_tick(usage, charges, k1);
  return ticks <= 1 ? first : usage_after_tick(first, 0, std::pow(k1, ticks - 1));
}

double priority_step(double usage, uint64_t active, double shares) {
  // An exact multiple of the step for one active job: JobRecord::share_priority_step.
  return static_cast<double>(active) * (usage / (shares * shares));
}

void limit_cost(AttemptEnded& end, Micros decided, uint32_t cores, Micros now) {
  const Micros wall = std::max<Micros>(0, now - decided);
  end.wall = std::clamp<Micros>(end.wall, 0, wall);
  end.staging = std::clamp<Micros>(end.staging, 0, wall);
  end.cpu = std::clamp<Micros>(end.cpu, 0, wall * cores);
  end.cpu_saved = std::clamp<Micros>(end.cpu_saved, -1, end.cpu);
}

Cost cost_of(EndReason ended, Micros cpu, Micros saved, bool charge_all) {
  Cost cost;
  cost.used = std::max<Micros>(cpu, 0);
  cost.kept = ended == EndReason::kDone ? cost.used : std::clamp<Micros>(saved, 0, cost.used);
  cost.lost = cost.used - cost.kept;
  // A failure is the job's fault, a removal or hold the user's choice, and an end to be run again
  // the program's: all CPU time is charged. Time lost because of the machine is not (rule 7).
  const bool own_doing = is_failure(ended) || ended == EndReason::kRemoved ||
                         ended == EndReason::kHeld || ended == EndReason::kSaved;
  cost.in_full = own_doing || charge_all || ended == EndReason::kDone;
  cost.charged = cost.in_full ? cost.used : cost.kept;
  return cost;
}

double Drift::value_at(double value, Micros since, Micros now) const {
  if (!on_ || value == 0) return value;
  return value * std::exp2(-static_cast<double>(now - since) / half_life_);
}

double Drift::order(double value, Micros since) const {
  if (!on_) return value;
  // value * 2^(-(t - since) / h) has the logarithm log2(value) + since/h - t/h,
  // and t/h is the same for all.
  if (value <= 0) return -std::numeric_limits<double>::infinity();
  return std::log2(value) + static_cast<double>(since) / half_life_;
}

// As if it had just returned: the source does not define an initial priority.
void SharePriority::submitted(JobRecord& job, const UserRecord& user, uint64_t waiting,
                              Micros now) const {
  if (!initial_zero_) returned(job, user, waiting, now);
}

// Raises the priority, drifted until now, by usage * active / shares^2.
void SharePriority::returned(JobRecord& job, const UserRecord& user, uint64_t waiting,
                             Micros now) const {
  // `active` includes the job itself, even if it is held and so not in the queue; each
  // job of an array counts those before it.
  const uint64_t others = job.state == JobState::kWaiting ? job.count : 0;
  const uint64_t active = waiting - others + 1;
  job.share_priority_step = others > 1 ? priority_step(user.usage, 1, user.shares) : 0;
  job.share_priority = drift_.value_at(job.share_priority, job.share_priority_at, now) +
                       priority_step(user.usage, active, user.shares);
  job.share_priority_at = now;
}

}  // namespace sublet::scheduling
