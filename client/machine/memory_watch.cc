#include "client/machine/memory_watch.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sublet::client {
namespace {

bool is_here(const std::vector<HeldAttempt>& held, const AttemptName& name) {
  return std::ranges::any_of(held, [&](const HeldAttempt& one) {
    return one.name == name && one.state != kAttemptDelivering;
  });
}

// Its processes are there, and it is not on its way.
bool may_be_named(const HeldAttempt& one) {
  return one.state == kAttemptRunning || one.state == kAttemptSuspended;
}

}  // namespace

void MemoryWatch::rest() {
  tight_ = low_ = false;
  due_ns_ = last_ns_ = 0;
  named_.clear();
  leaving_.reset();
}

std::optional<MemoryWatch::Named> MemoryWatch::look(int64_t now_ns, uint64_t available,
                                                    const std::vector<HeldAttempt>& held) {
  if (settings_.least == 0) {
    due_ns_ = std::numeric_limits<int64_t>::max();
    return std::nullopt;
  }
  std::erase_if(named_, [&](const AttemptName& name) { return !is_here(held, name); });
  const bool was_tight = std::exchange(tight_, available < 2 * settings_.least);
  low_ = tight_ && (low_ || available < settings_.least);
  if (!tight_) leaving_.reset();
  due_ns_ = now_ns + pause_ns(now_ns, available);
  last_ns_ = now_ns;
  last_available_ = available;
  // What they use is known from the second look on.
  if (!tight_ || !was_tight || available >= settings_.least) return std::nullopt;
  return choose(now_ns, available, held);
}

// Half of the time until, at the current rate, it would be tight.
int64_t MemoryWatch::pause_ns(int64_t now_ns, uint64_t available) const {
  if (tight_) return kShortestNs;
  if (last_ns_ == 0 || available >= last_available_) return kLongestNs;
  const auto left = static_cast<double>(available - 2 * settings_.least);
  const auto taken = static_cast<double>(last_available_ - available);
  const auto elapsed = static_cast<double>(now_ns - last_ns_);
  const double pause = std::min(left / taken * elapsed / 2, static_cast<double>(kLongestNs));
  return std::max(static_cast<int64_t>(pause), kShortestNs);
}

std::optional<MemoryWatch::Named> MemoryWatch::choose(int64_t now_ns, uint64_t available,
                                                      const std::vector<HeldAttempt>& held) {
  if (leaving_ && is_here(held, leaving_->who.name) && now_ns < leaving_->until_ns) {
    if (leaving_->killed || available >= settings_.least / 4) return std::nullopt;
    leaving_->killed = true;
    return leaving_->who;
  }
  leaving_.reset();
  const HeldAttempt* most = nullptr;
  for (const HeldAttempt& one : held)
    if (may_be_named(one) && !named_.contains(one.name) && (!most || one.memory > most->memory))
      most = &one;
  if (!most) return std::nullopt;
  named_.insert(most->name);
  leaving_ = {{most->name, most->memory}, now_ns + settings_.leave_ms * 1'000'000, false};
  return leaving_->who;
}

}  // namespace sublet::client
