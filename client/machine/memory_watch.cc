#include "client/machine/memory_watch.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sublet::client {
namespace {

bool is_here(const std::vector<TenantMemory>& tenants, const AttemptName& name) {
  return std::ranges::any_of(tenants, [&](const TenantMemory& one) { return one.name == name; });
}

}  // namespace

std::optional<MemoryWatch::Named> MemoryWatch::look(int64_t now_ns, uint64_t available,
                                                    const Pressure& pressure,
                                                    const std::vector<TenantMemory>& tenants) {
  if (least_ == 0) {
    due_ns_ = std::numeric_limits<int64_t>::max();
    return std::nullopt;
  }
  std::erase_if(named_, [&](const AttemptName& name) { return !is_here(tenants, name); });
  if (leaving_ && (!is_here(tenants, leaving_->who.name) || now_ns >= leaving_->until_ns))
    leaving_.reset();
  add_waits(now_ns, available, pressure);
  const bool scarce = available < 2 * least_;
  const bool was_tight = std::exchange(tight_, scarce || waited_ns_ > 0);
  low_ = now_ns < calm_from_ns_ || (scarce && (low_ || available < least_));
  due_ns_ = now_ns + pause_ns(now_ns, available, !tenants.empty());
  last_ns_ = now_ns;
  last_available_ = available;
  // What they use is known from the second look on.
  const bool pressed = available < least_ || waited_ns_ >= kWaitedNs;
  if (!tight_ || !was_tight || !pressed) return std::nullopt;
  return choose(now_ns, available, tenants);
}

// Waits that may be the jobs' own count only if the owner's reserve is touched: a job that works
// at its own bound waits whatever the machine has.
void MemoryWatch::add_waits(int64_t now_ns, uint64_t available, const Pressure& pressure) {
  const bool counts = !pressure.of_jobs_too || available < settings_.reserve;
  const int64_t ppm = (counts ? int64_t{pressure.ppm} : 0) - kBearablePpm;
  const int64_t elapsed_us = last_ns_ == 0 ? 0 : (now_ns - last_ns_) / 1000;
  if (elapsed_us > 2 * kLongestNs / 1000)  // nothing was watched meanwhile
    waited_ns_ = 0;
  else
    waited_ns_ = std::clamp(waited_ns_ + ppm * elapsed_us / 1000, int64_t{0}, 2 * kWaitedNs);
  if (waited_ns_ >= kWaitedNs) calm_from_ns_ = now_ns + kCalmNs;
  if (leaving_) waited_ns_ = 0;  // what the machine is like without it remains to be seen
}

// Half of the time until, at the current rate, it would be tight.
int64_t MemoryWatch::pause_ns(int64_t now_ns, uint64_t available, bool anyone) const {
  if (tight_) return anyone ? kShortestNs : kLongestNs;
  if (last_ns_ == 0 || available >= last_available_) return kLongestNs;
  const auto left = static_cast<double>(available - 2 * least_);
  const auto taken = static_cast<double>(last_available_ - available);
  const auto elapsed = static_cast<double>(now_ns - last_ns_);
  const double pause = std::min(left / taken * elapsed / 2, static_cast<double>(kLongestNs));
  return std::max(static_cast<int64_t>(pause), kShortestNs);
}

std::optional<MemoryWatch::Named> MemoryWatch::choose(int64_t now_ns, uint64_t available,
                                                      const std::vector<TenantMemory>& tenants) {
  if (leaving_) {
    if (leaving_->killed || available >= least_ / 4) return std::nullopt;
    leaving_->killed = true;
    return leaving_->who;
  }
  // Programs may wait for other reasons than jobs: who has little would lose work in vain.
  const uint64_t least_used = available < least_ ? 0 : least_ / 4;
  const TenantMemory* most = nullptr;
  for (const TenantMemory& one : tenants)
    if (one.may_go && one.used >= least_used && !named_.contains(one.name) &&
        (!most || one.used > most->used))
      most = &one;
  if (!most) return std::nullopt;
  named_.insert(most->name);
  leaving_ = {{most->name, most->used, available >= least_},
              now_ns + settings_.leave_ms * 1'000'000,
              false};
  return leaving_->who;
}

}  // namespace sublet::client
