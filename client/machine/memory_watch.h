// Keeps jobs from taking the memory that the owner's programs need: when little is left, or other
// programs keep waiting for memory although there seems to be some (what they read from files is
// evicted and read again, or they swap), no job may come, and the one that uses the most is named,
// which must leave. No other is named until it has gone or its time has passed; if hardly anything
// is left meanwhile, it is named again, to be killed. Pure: it reads no clock and no file. Not
// thread-safe.
//
// A job's own limit (its slot's part of the memory) is kept by the kernel. This is for what the
// limits of all jobs do not cover: programs that need more than the owner's reserve.
#ifndef SUBLET_CLIENT_MACHINE_MEMORY_WATCH_H_
#define SUBLET_CLIENT_MACHINE_MEMORY_WATCH_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "client/link/server_calls.h"

namespace sublet::client {

struct MemorySettings {
  uint64_t reserve = 0;       // the owner's, bytes; 0: nothing is watched
  int64_t leave_ms = 12'000;  // time for a named attempt to go
};

// An attempt whose processes may be there.
struct TenantMemory {
  AttemptName name;
  uint64_t used = 0;    // when it was last asked
  bool may_go = false;  // it runs or is suspended, and is not on its way
};

// For what part of the time since the last look some program waited for memory.
struct Pressure {
  uint32_t ppm = 0;
  bool of_jobs_too = false;  // it cannot be told apart for how long those programs were jobs
};

class MemoryWatch {
 public:
  explicit MemoryWatch(const MemorySettings& settings) : settings_(settings) {}

  // Bytes below which a job must leave.
  static uint64_t least(const MemorySettings& settings) { return settings.reserve / 4; }

  struct Named {
    AttemptName name;
    uint64_t used = 0;
    bool waited = false;  // because programs wait for memory, not because little is left
  };
  // available: bytes that programs could still get. Returns who must leave.
  std::optional<Named> look(int64_t now_ns, uint64_t available, const Pressure& pressure,
                            const std::vector<TenantMemory>& tenants);

  // Whether the last look found so little, or so many waits, that the tenants have to be asked
  // before the next one.
  bool is_tight() const { return tight_; }
  // No job may come: from the first time that it is below the least until it is twice that, and
  // for kCalmNs after the last time that programs waited too long.
  bool is_low() const { return low_; }
  // When to look again, CLOCK_BOOTTIME; INT64_MAX: never. Not needed while there is no tenant,
  // unless it is low.
  int64_t next_due() const { return due_ns_; }

 private:
  static constexpr int64_t kShortestNs = 100'000'000;
  static constexpr int64_t kLongestNs = 1'000'000'000;
  // Programs may wait for this part of the time. What they wait beyond it is added up, and what
  // they wait less is taken off; a job must leave if the sum is kWaitedNs, for example if they
  // wait 200 ms within a second.
  static constexpr int64_t kBearablePpm = 100'000;
  static constexpr int64_t kWaitedNs = 100'000'000;
  static constexpr int64_t kCalmNs = 60'000'000'000;

  void add_waits(int64_t now_ns, uint64_t available, const Pressure& pressure);
  int64_t pause_ns(int64_t now_ns, uint64_t available, bool anyone) const;
  std::optional<Named> choose(int64_t now_ns, uint64_t available,
                              const std::vector<TenantMemory>& tenants);

  const MemorySettings settings_;
  const uint64_t least_ = least(settings_);
  bool tight_ = false;
  bool low_ = false;
  int64_t due_ns_ = 0;
  int64_t last_ns_ = 0;  // of the last look, 0: none
  uint64_t last_available_ = 0;
  int64_t waited_ns_ = 0;     // more than is bearable
  int64_t calm_from_ns_ = 0;  // no job may come before
  std::set<AttemptName> named_;
  struct Leaving {
    Named who;
    int64_t until_ns;
    bool killed;
  };
  std::optional<Leaving> leaving_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_MEMORY_WATCH_H_
