// All code reads the time through this interface, so that tests can replace it.
// Thread-safe.
#ifndef SUBLET_BASE_CLOCK_H_
#define SUBLET_BASE_CLOCK_H_

#include <atomic>
#include <cstdint>

namespace sublet {

class Clock {
 public:
  virtual ~Clock() = default;
  // Microseconds since 1970 UTC; may jump when the clock is set.
  virtual int64_t utc_us() const = 0;
  // Nanoseconds of CLOCK_BOOTTIME: never jumps back, counts through suspend.
  virtual int64_t boot_ns() const = 0;
  // Seconds east of UTC of this machine's local time at that instant, daylight saving included.
  virtual int32_t utc_offset_s(int64_t utc_us) const = 0;
};

// The kernel's clocks; exists for the lifetime of the process.
const Clock& system_clock();

// Advances only when the test moves it.
class ManualClock : public Clock {
 public:
  ManualClock(int64_t utc_us, int64_t boot_ns) : utc_us_(utc_us), boot_ns_(boot_ns) {}
  int64_t utc_us() const override { return utc_us_; }
  int64_t boot_ns() const override { return boot_ns_; }
  int32_t utc_offset_s(int64_t) const override { return utc_offset_s_; }
  // Advances both clocks by `ms`.
  void advance_ms(int64_t ms) {
    utc_us_ += ms * 1000;
    boot_ns_ += ms * 1'000'000;
  }
  // Sets the wall clock; the boot clock is unaffected.
  void set_utc_us(int64_t us) { utc_us_ = us; }
  void set_utc_offset_s(int32_t s) { utc_offset_s_ = s; }

 private:
  std::atomic<int64_t> utc_us_;
  std::atomic<int64_t> boot_ns_;
  std::atomic<int32_t> utc_offset_s_{0};
};

}  // namespace sublet

#endif  // SUBLET_BASE_CLOCK_H_
