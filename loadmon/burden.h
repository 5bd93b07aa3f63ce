// How much jobs that stay slow the owner's programs down. Every second a thread looks for how long
// programs waited for memory, which suspended jobs hold, too (where the kernel tells:
// /proc/pressure/memory). While jobs linger it also measures a program of our own that weighs as
// much as one of the owner's: it uses 10 ms of CPU time and looks how long it had to wait for the
// CPU. Both are taken over the last 8 s. (Less CPU time shows nothing: who has slept is served
// first, for some milliseconds.) The owner's own programs delay that thread, too: where they take
// all CPU time, a job that lingers gets none, and may as well go elsewhere.
#ifndef SUBLET_LOADMON_BURDEN_H_
#define SUBLET_LOADMON_BURDEN_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace sublet::loadmon {

class Burden {
 public:
  // bound: the largest share of its time that a program of the owner's may have to wait, 0 to 1.
  // root: files of the kernel are read below it.
  Burden(double bound, const std::string& root);
  ~Burden();

  // One thread calls the two; neither waits, not even for a lock: the measuring thread has no more
  // weight than the owner's programs.
  // Jobs stay, and some of them linger, or do so no longer. Measuring begins anew with each change
  // to "true".
  void watch(bool jobs_stay, bool jobs_linger);
  // The jobs are too much of a burden, as far as is known. Where nothing can be measured, they
  // are.
  bool is_too_heavy() const { return found_too_heavy_ == turn_ && is_wanted(turn_); }

 private:
  static constexpr size_t kRounds = 8;
  struct Round {
    double waited = 0;  // share of its time in which the thread waited for the CPU
    double memory = 0;  // share of the time in which some program waited for memory
  };

  // Turns in which jobs stay are odd, the others even.
  static bool is_wanted(uint32_t turn) { return turn % 2 == 1; }
  void wake() const;
  bool start();
  void run();
  // Waits until a round is due; returns its turn, which is new if rounds_ was emptied.
  uint32_t next_round();
  bool measure(Round* round);
  void measure_memory(Round* round);
  bool measure_cpu(Round* round) const;
  bool is_heavy() const;

  const double bound_;
  const std::string pressure_file_;
  const UniqueFd wake_up_;  // eventfd
  std::atomic<bool> jobs_linger_{false};
  std::atomic<uint32_t> turn_{0};
  std::atomic<uint32_t> found_too_heavy_{0};  // the last turn in which they were
  std::atomic<bool> stop_{false};

  // Of the thread alone.
  std::array<Round, kRounds> rounds_;
  size_t count_ = 0;
  long long memory_us_ = -1;  // spent waiting for memory up to the last round; -1: not known
  int64_t memory_at_us_ = 0;  // when that was read
  std::thread thread_;        // started when jobs stay for the first time
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_BURDEN_H_
