// Lets a thread use a burst of CPU time, and from then on a hundredth of a core. Pure; one thread.
#ifndef SUBLET_CLIENT_SHEPHERD_CPU_SHARE_H_
#define SUBLET_CLIENT_SHEPHERD_CPU_SHARE_H_

#include <stdint.h>

namespace sublet::shepherd {

class CpuShare {
 public:
  static constexpr int64_t kPart = 100;  // of a core: one in so many
  static constexpr int64_t kBurstNs = 20'000'000;

  // How long to rest, in ms, 0: not at all. `now_ns`: a clock that never runs backwards;
  // `used_ns`: the thread's CPU time.
  int rest_ms(int64_t now_ns, int64_t used_ns) {
    if (seen_) {
      const int64_t left = level_ns_ - (now_ns - now_ns_) / kPart;
      level_ns_ = (left > 0 ? left : 0) + used_ns - used_ns_;
    }
    seen_ = true;
    now_ns_ = now_ns;
    used_ns_ = used_ns;
    if (level_ns_ <= kBurstNs) return 0;
    return static_cast<int>((level_ns_ - kBurstNs + kSlackNs) * kPart / 1'000'000);
  }

 private:
  // Below the burst when it goes on, so that it seldom rests.
  static constexpr int64_t kSlackNs = 1'000'000;

  bool seen_ = false;
  int64_t now_ns_ = 0;
  int64_t used_ns_ = 0;
  int64_t level_ns_ = 0;  // what the share does not cover yet
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_CPU_SHARE_H_
