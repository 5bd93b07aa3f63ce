// The brain's ids, states and reasons. The values equal those of the public
// contract (idl/types.idl; a server test compares them), so no translation is
// needed.
#ifndef SUBLET_SCHEDULING_TYPES_H_
#define SUBLET_SCHEDULING_TYPES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/attempt.h"
#include "scheduling/amounts.h"
#include "scheduling/shared_string.h"

namespace sublet::scheduling {

using JobId = uint64_t;
using BatchId = uint64_t;
using MachineId = uint64_t;
using Micros = int64_t;  // instants: microseconds UTC; spans: microseconds

enum class JobState : uint32_t {
  kWaiting = 1,
  kPlaced = 2,
  kRunning = 3,
  kHeld = 4,
  kDone = 5,
  kFailed = 6,
  kRemoved = 7,
  kSuspended = 8,  // its attempt is
  kDelivering = 9  // its program has ended, its outputs are on their way
};
inline bool is_known(JobState s) { return s >= JobState::kWaiting && s <= JobState::kDelivering; }
// Has a machine.
inline bool is_at_work(JobState s) {
  return s == JobState::kPlaced || s == JobState::kRunning || s == JobState::kSuspended ||
         s == JobState::kDelivering;
}

enum class AttemptState : uint32_t {
  kOrdered = 1,
  kStaging = 2,
  kRunning = 3,
  kLeaving = 4,
  kEnded = 5,
  kSuspended = 6,  // frozen while the machine's owner is there; may run again
  kDelivering = 7  // its program has ended, its outputs are on their way
};
inline bool is_known(AttemptState s) {
  return s >= AttemptState::kOrdered && s <= AttemptState::kDelivering;
}
// Whether `b` comes after `a` in the life of an attempt: the numbers are not in order.
inline bool precedes(AttemptState a, AttemptState b) {
  const auto place = [](AttemptState s) {
    constexpr int kPlaces[] = {0, 0, 1, 2, 4, 6, 3, 5};
    return kPlaces[static_cast<uint32_t>(s)];
  };
  return place(a) < place(b);
}
// Whether an attempt in state `a` may go on to `b`: a suspended one may run again.
inline bool may_follow(AttemptState b, AttemptState a) {
  return precedes(a, b) || (a == AttemptState::kSuspended && b == AttemptState::kRunning);
}

enum class EndReason : uint32_t {
  kNone = 0,
  kDone = 1,
  kExit = 2,
  kSignal = 3,
  kStart = 4,
  kStaging = 5,
  kOutput = 6,
  kLimit = 7,
  kOwner = 16,
  kBlind = 17,
  kLease = 18,
  kPreempted = 19,
  kDrained = 20,
  kRefused = 21,
  kLost = 22,
  kRemoved = 23,
  kHeld = 24,
  kSuperseded = 25,
  kAdministrator = 26,
  kSaved = 27
};

// Final states never change again.
inline bool is_final(JobState s) {
  return s == JobState::kDone || s == JobState::kFailed || s == JobState::kRemoved;
}
// A failure uses up a retry; an eviction or a refusal never does (rule 7).
inline bool is_failure(EndReason r) { return r >= EndReason::kExit && r <= EndReason::kLimit; }
// The attempt lost its slot through no fault of the job.
inline bool is_eviction(EndReason r) { return protocol::had_to_leave(static_cast<uint32_t>(r)); }

enum class MachineState : uint32_t { kIdle = 1, kBusy = 2, kSilent = 3, kGone = 4 };

enum class LeaveReason : uint32_t {
  kPreempt = 4,
  kRemoved = 5,
  kSuperseded = 8,
  kHeld = 9,
  kAdministrator = 10,
  kUnstarted = 11  // only if its program has not been started
};

enum class Verdict : uint32_t { kCounts = 1, kSuperseded = 2, kKnown = 3, kLater = 4 };

struct AttemptKey {
  JobId job = 0;
  uint32_t attempt = 0;
  bool operator==(const AttemptKey&) const = default;
  auto operator<=>(const AttemptKey&) const = default;
};

// Jobs first .. first + count - 1.
struct JobRange {
  JobRange(JobId one = 0, uint64_t many = 1) : first(one), count(many) {}
  JobId first;
  uint64_t count;
  auto operator<=>(const JobRange&) const = default;
};

// What must have happened to a job before another one may run.
enum class After : uint32_t {
  kDone = 1,
  kEnded = 2,  // however
  kStarted = 3
};

// Something that jobs wait for: it must have happened to each of `jobs`.
struct Dependence {
  JobRange jobs;
  After condition = After::kDone;
  auto operator<=>(const Dependence&) const = default;
};

// What becomes of jobs that can never run, because what they wait for cannot happen any more.
enum class OnNever : uint32_t { kHold = 1, kRemove = 2 };

// When to remove the rest of a batch: as soon as one condition holds. 0, "": not set.
struct StopWhen {
  uint64_t done = 0;    // this many of its jobs are done
  uint64_t failed = 0;  // this many have failed
  std::string output;   // a job is done and produced this output, named as in its description
  bool is_set() const { return done > 0 || failed > 0 || !output.empty(); }
  bool operator==(const StopWhen&) const = default;
};

// What a job requires of a machine. Empty strings and zeros: no requirement.
struct Requirements {
  SharedString os;
  SharedString architecture;
  uint32_t cores = 0;
  uint64_t memory = 0;  // bytes
  uint64_t disk = 0;    // bytes
  // "OS/ARCHITECTURE" of each platform that it has a program for, in order,
  // separated by spaces.
  SharedString platforms = {};
  SharedString require = {};  // an expression over machine_vocabulary(), which must hold
  SharedString prefer = {};   // another, a number: the larger, the better
  // Named amounts, as rules::NamedAmounts writes them: of the pool's licences, the rest of the
  // machine's own.
  SharedString resources = {};
  SharedString hours = {};  // at which it may be started: rules::Hours::text(); "": at any time
  bool operator==(const Requirements&) const = default;
  auto operator<=>(const Requirements&) const = default;
};
// What an attempt of such a job reserves: at least one core.
inline Amounts amounts_of(const Requirements& needs) {
  return {std::max(needs.cores, 1u), needs.memory, needs.disk};
}

// Whether Requirements::platforms allow this system and architecture.
bool allows_platform(std::string_view platforms, std::string_view os,
                     std::string_view architecture);

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_TYPES_H_
