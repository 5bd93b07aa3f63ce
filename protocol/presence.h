// Is the owner here? Samples of what is going on at the machine go in, "active"
// or "away" comes out. The owner is back at the first sample that says so, and
// gone only after an uninterrupted quiet time; whatever cannot be seen counts
// as the owner. Pure: no clock, no I/O, no allocation. One object, one thread.
#ifndef SUBLET_PROTOCOL_PRESENCE_H_
#define SUBLET_PROTOCOL_PRESENCE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/frame.h"

namespace sublet::protocol {

// What a script that stands in for a person says.
enum class ScriptedOwner { kNone, kAway, kActive };

// What was seen at one instant. Everything is the owner's alone: the jobs' own
// effect has been subtracted.
struct PresenceSample {
  int64_t instant = 0;                        // CLOCK_BOOTTIME, ns
  double cpu = -1;                            // cores in use since the last sample; < 0: not known
  std::array<double, 3> load = {-1, -1, -1};  // averages over 1, 5, 15 min; < 0: not known
  int64_t input_age_ms = -1;                  // since the last input; < 0: not known
  ScriptedOwner scripted = ScriptedOwner::kNone;  // overrules everything above
  bool blind = false;                             // a source failed
};

// When is a machine idle? A machine becomes idle when every measure has been
// below its `become` threshold for idle_time_ms, and stays idle until one is
// above its `stay` threshold. A negative threshold: that measure does not count.
struct PresenceRule {
  double cpu_become = -1;  // cores
  double cpu_stay = -1;
  std::array<double, 3> load_become = {-1, -1, -1};
  std::array<double, 3> load_stay = {-1, -1, -1};
  // Input counts: none for idle_time_ms to become idle, any ends it. Not knowing
  // of any input (a machine without a terminal) is no input.
  bool input = false;
  int64_t idle_time_ms = 15 * 60 * 1000;
  // A longer time without a sample (suspend, a stopped monitor) was not observed.
  int64_t max_gap_ms = 10 * 1000;
  // A script's "away" has to last idle_time_ms like anything else.
  bool script_waits = false;

  bool uses_cpu() const { return cpu_stay >= 0; }
  bool uses_load() const;

  // "default": evict when the owner uses more than 0.25 core, or at input; idle
  // below 0.10 core. "classic": load average, idle below 1.0, evict above 2.30.
  // Both after 15 min. Nothing for another name.
  static std::optional<PresenceRule> preset(const std::string& name);
  // Empty, or what is wrong: a measure needs both thresholds, `become` not above
  // `stay`; times are not negative.
  std::string problem() const;
};

struct PresenceVerdict {
  sublet_presence state = SUBLET_PRESENCE_ACTIVE;
  sublet_presence_reason reason = SUBLET_PRESENCE_BLIND;
  // Until the machine may become idle: 0 when it is, -1 when the owner is at it.
  int64_t ms_until_idle = -1;
  int64_t since = 0;  // instant of the sample that changed the state
};

class OwnerPresence {
 public:
  explicit OwnerPresence(const PresenceRule& rule) : rule_(rule) {}

  // What follows from this sample. Active until the first one. A sample that is
  // not later than the one before is treated as blindness.
  const PresenceVerdict& update(const PresenceSample& sample);
  // The verdict as it stands at `now`: silence since the last sample for longer
  // than max_gap_ms is blindness.
  PresenceVerdict at(int64_t now) const;

 private:
  // Why this sample ends or prevents idleness, judged by the `stay` or by the
  // `become` thresholds; SUBLET_PRESENCE_NONE when it does not.
  sublet_presence_reason disturbance(const PresenceSample& sample, bool idle) const;
  sublet_presence_reason blindness(const PresenceSample& sample) const;
  void enter(sublet_presence state, sublet_presence_reason reason, int64_t ms_until_idle);

  PresenceRule rule_;
  PresenceVerdict verdict_;
  std::optional<int64_t> last_;         // instant of the last sample
  std::optional<int64_t> quiet_since_;  // first of the quiet samples in a row
};

// How much of the load averages is the jobs' doing. The kernel's averages are
// exponential: so is this one, with the same time constants, of the jobs'
// runnable processes alone. It goes on decaying after the jobs end, as the
// kernel's do.
class LoadCorrection {
 public:
  // `runnable` processes of the jobs (may be a fraction) over the `seconds`
  // since the last call.
  void add(double seconds, double runnable);
  // The owner's part of load average number i (0: 1 min, 1: 5 min, 2: 15 min).
  double owners(double load, size_t i) const;

 private:
  std::array<double, 3> jobs_ = {0, 0, 0};
};

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_PRESENCE_H_
