// Limits the CPU use of work for evicted jobs while the owner is present: all threads
// using it together get a burst of CPU time, then a share of one core. Priorities are not
// enough: in its own autogroup a thread of nice 19 competes like any other with the
// owner's programs. Any thread.
#ifndef SUBLET_CLIENT_STAGING_PACE_H_
#define SUBLET_CLIENT_STAGING_PACE_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace sublet::client {

class Pace {
 public:
  static constexpr int64_t kBurstNs = 50'000'000;

  // share: of one core. `free`: while true, nothing is limited.
  Pace(double share, const std::atomic<bool>& free) : share_(share), free_(free) {}

  bool is_free() const { return free_; }

  // Records CPU time used up to now.
  void used(int64_t cpu_ns, int64_t now_ns);
  // How long to pause from now on.
  int64_t pause_ns(int64_t now_ns) const;

  // Sleeps that long, or until `stop` or `free`.
  void wait(const std::atomic<bool>& stop) const;

 private:
  const double share_;
  const std::atomic<bool>& free_;
  mutable std::mutex mutex_;
  int64_t paid_until_ns_ = 0;  // CLOCK_BOOTTIME: when the CPU time used so far is paid off
};

// A scope whose CPU time is recorded. The constructor waits until earlier use is paid off.
class PacedWork {
 public:
  PacedWork(Pace& pace, const std::atomic<bool>& stop);
  ~PacedWork();
  PacedWork(const PacedWork&) = delete;
  PacedWork& operator=(const PacedWork&) = delete;

 private:
  Pace& pace_;
  int64_t begun_ns_;  // CPU time of this thread
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_PACE_H_
