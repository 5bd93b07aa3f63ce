// How fast this machine computes, and how busy it is.
//
// The reference workload is a loop of multiplications and additions of doubles, which stays in the
// processor's cache. Speed 1 is 10^9 of these multiply-accumulates a second, on one core. A piece
// of it is timed by the CPU clock of its thread, so that other programs hardly matter, and of
// several pieces the fastest counts.
#ifndef SUBLET_CLIENT_MACHINE_SPEED_H_
#define SUBLET_CLIENT_MACHINE_SPEED_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <thread>

namespace sublet::client {

inline constexpr uint64_t kPieceOperations = 1 << 20;  // in one piece of the workload

// Performs a piece and returns how much CPU time of this thread it took, in ns.
int64_t perform_piece();

// The speed by the fastest of as many pieces as take about 30 ms together. 0: `goes_on`, asked
// before each, said no.
double speed_by(const std::function<int64_t()>& piece, const std::function<bool()>& goes_on);

// The load average of the last minute, from ROOT/proc/loadavg; `root`: "" for this machine's own.
// 0 if it is not known.
double load_average(const std::string& root);

// Measures the speed when nothing is disturbed: first, and again an hour after the last time, as
// soon as neither the owner nor a job is there. A thread does it that exists only meanwhile, in the
// idle scheduling class. It stops at the next piece, of about 1 ms, when the owner is back; then
// it is tried again.
class SpeedWatch {
 public:
  static constexpr int64_t kEveryNs = 3600ll * 1'000'000'000;

  struct Hooks {
    std::function<int64_t()> piece = perform_piece;
    std::function<bool()> may_measure;  // any thread: the owner is away
    std::function<void()> measured;     // the thread that measures
  };
  // For tests, ROOT/speed, if there is one, says the speed instead: nothing is measured.
  SpeedWatch(const std::string& root, Hooks hooks);
  ~SpeedWatch();

  // The last speed that was measured; 0: none yet. Begins to measure if it is due and `quiet`:
  // there is no job. Always the same thread, which is not on the path of an eviction.
  double look(int64_t now_ns, bool quiet);

 private:
  void measure();

  const Hooks hooks_;
  std::atomic<double> speed_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> busy_{false};   // the thread measures
  std::atomic<bool> fresh_{false};  // it has a result that was not looked at
  int64_t due_ns_ = 0;
  std::thread thread_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_SPEED_H_
