#include "client/staging/pace.h"

#include <time.h>

#include <algorithm>

#include "base/clock.h"

namespace sublet::client {
namespace {

// How often a pause checks whether the owner has left.
constexpr int64_t kLookUpNs = 50'000'000;

int64_t thread_cpu_ns() {
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

void Pace::used(int64_t cpu_ns, int64_t now_ns) {
  if (free_) return;
  auto work_off = [this](int64_t ns) {
    return static_cast<int64_t>(static_cast<double>(ns) / share_);
  };
  std::lock_guard lock(mutex_);
  paid_until_ns_ = std::max(paid_until_ns_, now_ns - work_off(kBurstNs)) + work_off(cpu_ns);
}

int64_t Pace::pause_ns(int64_t now_ns) const {
  if (free_) return 0;
  std::lock_guard lock(mutex_);
  return std::max<int64_t>(0, paid_until_ns_ - now_ns);
}

void Pace::wait(const std::atomic<bool>& stop) const {
  for (;;) {
    int64_t pause = std::min(pause_ns(system_clock().boot_ns()), kLookUpNs);
    if (pause == 0 || stop) return;
    timespec time = {0, pause};
    nanosleep(&time, nullptr);
  }
}

PacedWork::PacedWork(Pace& pace, const std::atomic<bool>& stop) : pace_(pace) {
  pace_.wait(stop);
  begun_ns_ = thread_cpu_ns();
}

PacedWork::~PacedWork() { pace_.used(thread_cpu_ns() - begun_ns_, system_clock().boot_ns()); }

}  // namespace sublet::client
