// The state of one attempt shared by the reactor thread and the workers. The reactor
// thread owns the attempt's state machine and posts at most one task at a time; the
// members below the line belong to the running task.
#ifndef SUBLET_CLIENT_ATTEMPTS_WORK_H_
#define SUBLET_CLIENT_ATTEMPTS_WORK_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "attempt/folder.h"
#include "checkpoint-api/interval.h"
#include "client/attempts/assignment.h"
#include "client/attempts/seen_eviction.h"
#include "client/link/server_calls.h"

namespace sublet::client {

inline std::string attempt_label(const AttemptName& name) {
  return "attempt " + std::to_string(name.job) + "." + std::to_string(name.attempt);
}

// A file being fetched (staging.cc).
struct Incoming;

struct Pack;  // staging/packed_files.h

// Of the files of an attempt that has ended, by kind, name, generation and size (hand_in.cc): they
// are read for it once, however often the server is away.
using KnownDigests = std::map<std::tuple<FileKind, std::string, uint64_t, uint64_t>, Digest>;

// Of what there was too little, so that an attempt had to leave; kNothing: of nothing.
struct Shortage {
  enum class Of { kNothing, kDisk, kMemory, kMemoryWaits, kDiskBound };
  Of of = Of::kNothing;
  uint64_t used = 0;  // bytes used by the attempt
  uint64_t free = 0;  // bytes left on the machine; kDiskBound: that it may use
};

struct AttemptWork {
  AttemptWork(std::shared_ptr<const Assignment> order, std::string where)
      : assignment(std::move(order)),
        folder(std::move(where)),
        lease_ns(assignment->first_lease_ns),
        held_generation(assignment->checkpoint_generation) {}

  const std::shared_ptr<const Assignment> assignment;
  const std::string folder;
  std::string label() const { return attempt_label(assignment->name); }

  // Written by the reactor thread, read by all.
  std::atomic<bool> stop{false};          // the running task must end as soon as it can
  std::atomic<bool> ended{false};         // its start need not be reported any more
  std::atomic<int64_t> lease_ns;          // CLOCK_BOOTTIME
  std::atomic<uint32_t> leave_reason{0};  // enum sublet_leave_reason, as sent to it
  // Written before leave_reason, short_of last.
  std::atomic<uint64_t> short_used{0};
  std::atomic<uint64_t> short_free{0};
  std::atomic<Shortage::Of> short_of{Shortage::Of::kNothing};
  std::atomic<int64_t> started_us{0};       // UTC; when its program was started, 0: not known
  std::atomic<bool> over{false};            // the server knows its end
  std::atomic<bool> outlives_power{false};  // see outlive_power()
  std::atomic<bool> released{false};        // its slot
  std::atomic<int> restarts{0};             // given to another shepherd, since one did not begin
  // Whether its shepherd has been seen to have ended before it began.
  std::atomic<bool> was_passed_over{false};
  // Written by the running task, read by all.
  enum class Delivery { kNotBegun, kOutputs, kNothing };
  std::atomic<Delivery> delivery{Delivery::kNotBegun};
  // Bytes of outputs read and sent. What is repeated is not counted.
  std::atomic<uint64_t> delivered{0};
  Shortage shortage() const { return {short_of, short_used, short_free}; }
  std::atomic<uint64_t> reported_generation{0};
  // CPU time when the shepherd reported that generation; written after it.
  std::atomic<int64_t> reported_cpu_us{0};
  // What the newest checkpoint on the server keeps of this attempt: CPU time; or, of files in which
  // the program saves its state, what it had used when they were changed (UTC). 0: nothing.
  std::atomic<int64_t> stored_cpu_us{0};
  std::atomic<int64_t> stored_files_us{0};
  // Started by another client: neither when its program was started nor what it had used at its
  // last save is known. Set before the first event.
  std::atomic<bool> adopted{false};
  // Until its own files are copied again, where its user has not said how often.
  std::atomic<int64_t> next_copy_ms{SUBLET_INTERVAL_LEAST_MS};

  // ---- of the running task ----
  uint64_t held_generation;           // newest checkpoint of the job that the server has
  uint64_t handed_in_generation = 0;  // newest uploaded by this attempt
  uint64_t handed_in_bytes = 0;
  std::optional<AttemptExit> exit;   // once it has been read
  AttemptEnd end;                    // complete once the hand-in is
  SeenEviction seen;                 // set before the task that finds the end
  bool health_noted = false;         // note_health() has been done
  bool eviction_noted = false;       // note_eviction() has been done
  std::optional<uint64_t> disk_use;  // of its folder, once it has ended
  bool is_untouched = false;         // the folder: it has no output, and nothing of the job's
  int64_t retry_ms = 0;              // the current back-off
  size_t inputs_here = 0;            // number fetched; the next one may be in progress
  std::shared_ptr<Incoming> incoming;
  bool moves_here = false;  // a process that should move its files has failed
  KnownDigests known_digests;
  // Of a job that saves files of its own (staging/own_files.h): the newest generation that the
  // server has, while it runs; and of what was left at its end, whether that is packed or not
  // needed, the pack until the server has it, and what it lacks.
  std::shared_ptr<Pack> packed;
  bool files_packed = false;
  std::shared_ptr<Pack> unsent;
  std::string left_out;
  sublet_save_costs copy_costs = {};  // while it runs
};

// Its end has to wait for the server: syncs what the end names, the exit record and the
// assignment, then says in a file of its own that this was done (kSyncedFile). Does nothing the
// second time; logs failures. Any thread.
void outlive_power(Files& files, AttemptWork& work);

// The result of a task.
enum class TaskResult {
  kDone,
  kAgain,    // the server is unavailable: repeat after retry_ms
  kStopped,  // asked to stop
};

// The next pause after a failure: 0.1 s, doubling up to 5 s.
inline int64_t next_pause(int64_t last_ms) {
  if (last_ms <= 0) return 100;
  return last_ms >= 2500 ? 5000 : last_ms * 2;
}

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_WORK_H_
