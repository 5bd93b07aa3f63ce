#include "base/clock.h"

#include <time.h>

namespace sublet {
namespace {

class SystemClock : public Clock {
 public:
  int64_t utc_us() const override {
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
  }
  int64_t boot_ns() const override {
    timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  }
  int32_t utc_offset_s(int64_t utc_us) const override {
    tzset();  // the administrator may have set another zone
    const time_t seconds = utc_us / 1'000'000;
    tm local = {};
    if (localtime_r(&seconds, &local) == nullptr) return 0;
    return static_cast<int32_t>(local.tm_gmtoff);
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace sublet
