// What the reactor's thread and the workers share of one attempt. The reactor's
// thread owns the attempt's state machine and gives out at most one task at a
// time; the members below the line belong to the task that runs.
#ifndef SUBLET_CLIENT_ATTEMPTS_WORK_H_
#define SUBLET_CLIENT_ATTEMPTS_WORK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "client/attempts/assignment.h"
#include "client/link/server_calls.h"

namespace sublet::client {

inline std::string attempt_label(const AttemptName& name) {
  return "attempt " + std::to_string(name.job) + "." + std::to_string(name.attempt);
}

// A file on its way in (staging.cc).
struct Incoming;

// Why an attempt had to leave when the disk ran low; used 0: it did not.
struct LowDisk {
  uint64_t used = 0;  // bytes of the attempt's folder
  uint64_t free = 0;  // bytes left on the disk
};

struct AttemptWork {
  AttemptWork(std::shared_ptr<const Assignment> order, std::string where)
      : assignment(std::move(order)),
        folder(std::move(where)),
        held_generation(assignment->checkpoint_generation) {}

  const std::shared_ptr<const Assignment> assignment;
  const std::string folder;
  std::string label() const { return attempt_label(assignment->name); }

  // Written by the reactor's thread, read by all.
  std::atomic<bool> stop{false};          // the task under way ends as soon as it can
  std::atomic<bool> ended{false};         // ended: no use in telling that it started
  std::atomic<int64_t> lease_ns{0};       // CLOCK_BOOTTIME
  std::atomic<uint32_t> leave_reason{0};  // enum sublet_leave_reason: what it was told
  // Both before leave_reason.
  std::atomic<uint64_t> disk_used{0};
  std::atomic<uint64_t> disk_free{0};
  LowDisk low_disk() const { return {disk_used, disk_free}; }
  std::atomic<uint64_t> reported_generation{0};
  // CPU time when the shepherd told of that generation.
  std::atomic<int64_t> reported_cpu_us{0};

  // ---- of the task that runs ----
  uint64_t held_generation;           // newest that the server has of this attempt's line
  uint64_t handed_in_generation = 0;  // newest uploaded by this attempt
  uint64_t handed_in_bytes = 0;
  AttemptEnd end;               // complete once the hand-in is
  bool health_noted = false;    // what its end says of this machine has been told
  int64_t retry_ms = 0;         // the present back-off
  size_t inputs_here = 0;       // fetched; the next one may be on its way
  bool outlives_power = false;  // its assignment does
  std::shared_ptr<Incoming> incoming;
};

// Its end has to wait for the server: from now on a loss of power does not take the
// assignment, without which an exit record is nobody's. Does nothing the second
// time; a failure is logged.
void outlive_power(Files& files, AttemptWork& work);

// What a task came to.
enum class TaskResult {
  kDone,
  kAgain,    // the server is away: once more, after retry_ms
  kStopped,  // asked to stop
};

// The next pause after a failure: 0.1 s, doubling up to 5 s.
inline int64_t next_pause(int64_t last_ms) {
  if (last_ms <= 0) return 100;
  return last_ms >= 2500 ? 5000 : last_ms * 2;
}

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_WORK_H_
