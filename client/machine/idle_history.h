// How long this machine is idle at a time: from when jobs may come until they have to go. From it
// programs choose how often they save (checkpoint-api/interval.h).
//
// The estimate is that for exponentially distributed times: idle time by ends of it, where the
// time since the last beginning counts, too. One end after two hours is taken to have been before;
// the past counts half as soon as there are 64 ends.
#ifndef SUBLET_CLIENT_MACHINE_IDLE_HISTORY_H_
#define SUBLET_CLIENT_MACHINE_IDLE_HISTORY_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "base/files.h"

namespace sublet::client {

class IdleHistory {
 public:
  static constexpr int64_t kAtFirstMs = 2 * 3600 * 1000;
  static constexpr int64_t kMostEnds = 64;

  // Reads `path`. If it is damaged, it is set aside as PATH.damaged, and the history begins anew.
  IdleHistory(Files& files, std::string path);

  // Jobs may come, or have to go, at that time of CLOCK_BOOTTIME. Does nothing if that is known.
  // Reactor thread; neither waits nor allocates. True: a time has begun, and some have ended that
  // were not stored, so that store() is due.
  bool note(bool idle, int64_t now_ns);
  // Writes the times that have ended. Any thread but the reactor's; a failure is logged.
  void store();
  // In whole seconds, at least 1. Any thread.
  int64_t mean_s(int64_t now_ns) const;

 private:
  void read();

  Files& files_;
  const std::string path_;
  // Of the times that have ended.
  std::atomic<int64_t> idle_ms_{0};
  std::atomic<int64_t> ends_{0};
  std::atomic<int64_t> since_ns_{0};  // the present one; 0: none
  bool unsaved_ = false;              // of the reactor thread
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_IDLE_HISTORY_H_
