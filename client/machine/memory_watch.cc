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
                                                    const std::vector<TenantMemory>& tenants) {
  if (settings_.least == 0) {
    due_ns_ = std::numeric_limits<int64_t>::max();
    return std::nullopt;
  }
  std::erase_if(named_, [&](const AttemptName& name) { return !is_here(tenants, name); });
  const bool was_tight = std::exchange(tight_, available < 2 * settings_.least);
  low_ = tight_ && (low_ || available < settings_.least);
  if (!tight_) leaving_.reset();
  due_ns_ = now_ns + pause_ns(now_ns, available, !tenants.empty());
  last_ns_ = now_ns;
  last_available_ = available;
  // What they use is known from the second look on.
  if (!tight_ || !was_tight || available >= settings_.least) return std::nullopt;
  return choose(now_ns, available, tenants);
}

// Half of the time until, at the current rate, it would be tight.
int64_t MemoryWatch::pause_ns(int64_t now_ns, uint64_t available, bool anyone) const {
  if (tight_) return anyone ? kShortestNs : kLongestNs;
  if (last_ns_ == 0 || available >= last_available_) return kLongestNs;
  const auto left = static_cast<double>(available - 2 * settings_.least);
  const auto taken = static_cast<double>(last_available_ - available);
  const auto elapsed = static_cast<double>(now_ns - last_ns_);
  const double pause = std::min(left / taken * elapsed / 2, static_cast<double>(kLongestNs));
  return std::max(static_cast<int64_t>(pause), kShortestNs);
}

std::optional<MemoryWatch::Named> MemoryWatch::choose(int64_t now_ns, uint64_t available,
                                                      const std::vector<TenantMemory>& tenants) {
  if (leaving_ && is_here(tenants, leaving_->who.name) && now_ns < leaving_->until_ns) {
    if (leaving_->killed || available >= settings_.least / 4) return std::nullopt;
    leaving_->killed = true;
    return leaving_->who;
  }
  leaving_.reset();
  const TenantMemory* most = nullptr;
  for (const TenantMemory& one : tenants)
    if (one.may_go && !named_.contains(one.name) && (!most || one.used > most->used)) most = &one;
  if (!most) return std::nullopt;
  named_.insert(most->name);
  leaving_ = {{most->name, most->used}, now_ns + settings_.leave_ms * 1'000'000, false};
  return leaving_->who;
}

}  // namespace sublet::client
