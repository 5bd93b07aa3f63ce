// Holds back what is done for jobs that have left while the owner is here: all
// threads that ask together get a burst of CPU time, then a share of one core.
// Priorities alone do not do this: in its own autogroup a thread of nice 19
// competes like any other with the owner's programs. Any thread.
#ifndef SUBLET_CLIENT_STAGING_PACE_H_
#define SUBLET_CLIENT_STAGING_PACE_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace sublet::client {

class Pace {
 public:
  static constexpr int64_t kBurstNs = 50'000'000;

  // share: of one core. `free`: while it is true, nothing is delayed.
  Pace(double share, const std::atomic<bool>& free) : share_(share), free_(free) {}

  // So much CPU time was used just now.
  void used(int64_t cpu_ns, int64_t now_ns);
  // How long from now on nothing more may be used.
  int64_t pause_ns(int64_t now_ns) const;

  // Sleeps for as long, or until `stop` or `free`.
  void wait(const std::atomic<bool>& stop) const;

 private:
  const double share_;
  const std::atomic<bool>& free_;
  mutable std::mutex mutex_;
  int64_t paid_until_ns_ = 0;  // CLOCK_BOOTTIME: when what was used is worked off
};

// One piece of such work: its CPU time counts from here to the end of the scope.
// Waits first for what was used before.
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
