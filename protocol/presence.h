// Detects the owner's presence: samples of the machine's activity go in, "active" or
// "away" comes out. One sample is enough for the owner to be back; "away" requires an
// uninterrupted quiet time. Missing data counts as the owner's presence. Pure: no
// clock, no I/O, no allocation. Not thread-safe.
#ifndef SUBLET_PROTOCOL_PRESENCE_H_
#define SUBLET_PROTOCOL_PRESENCE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/frame.h"
#include "protocol/leaving.h"
#include "protocol/place.h"

namespace sublet::protocol {

// Presence as given by a script that simulates the owner.
enum class ScriptedOwner { kNone, kAway, kActive };

// The measurements at one instant, for the owner alone: the jobs' share has been
// subtracted.
struct PresenceSample {
  int64_t instant = 0;                        // CLOCK_BOOTTIME, ns
  double cpu = -1;                            // cores in use since the last sample; < 0: not known
  std::array<double, 3> load = {-1, -1, -1};  // averages over 1, 5, 15 min; < 0: not known
  int64_t input_age_ms = -1;                  // since the last input; < 0: not known
  const char* input_by = "";                  // which sense saw it; a literal
  Place input_place;                          // and where
  ScriptedOwner scripted = ScriptedOwner::kNone;  // overrides everything above
  bool blind = false;                             // a source failed
  bool paused = false;                            // the owner's own word: no jobs now
  bool unseen = false;  // somebody may be at a graphical session whose input nothing shows
  Place unseen_place;
  bool attends = false;         // a film or a call: the owner touches nothing, but is here
  const char* attends_by = "";  // a literal: "sound"
  Place attends_place;
  bool sleeps = false;  // the machine is about to sleep
  // By the owner's rules (docs/load-monitor.md): no jobs now, and no jobs from now on.
  bool rule_evicts = false;
  bool rule_withholds = false;
  // One of the latter by what is known of the pool: no more jobs on an idle machine either.
  bool pool_withholds = false;
  bool jobs_stay = false;  // suspended or lingering ones are here
  bool burdened = false;   // lingering ones slow the owner down

  // Where that was seen which a verdict is about.
  Place place_of(sublet_presence_reason reason) const;
};

// The conditions for an idle machine. It becomes idle when every measure has been
// below its `become` threshold for idle_time_ms, and stays idle until one is above
// its `stay` threshold. A negative threshold: that measure is ignored.
struct PresenceRule {
  static constexpr int64_t kRuleRestMs = 60 * 1000;

  double cpu_become = -1;  // cores
  double cpu_stay = -1;
  std::array<double, 3> load_become = {-1, -1, -1};
  std::array<double, 3> load_stay = {-1, -1, -1};
  // Whether input counts: none for idle_time_ms to become idle, any input ends it.
  // Unknown (a machine without a terminal) means no input.
  bool input = false;
  int64_t idle_time_ms = 15 * 60 * 1000;
  // The same for jobs that stayed while the owner was here: they go on before others may come.
  int64_t resume_time_ms = 60 * 1000;
  // A longer gap between samples (suspend, a stopped monitor) counts as blindness.
  int64_t max_gap_ms = 10 * 1000;
  // A script's "away" must last idle_time_ms, too.
  bool script_waits = false;

  // After a rule has evicted, jobs come again only when none has spoken for so long: what
  // they did may be what it was about.
  int64_t rule_rest_ms() const { return idle_time_ms < kRuleRestMs ? idle_time_ms : kRuleRestMs; }
  bool uses_cpu() const { return cpu_stay >= 0; }
  bool uses_load() const;

  // "default": evict when the owner uses more than 0.25 core, or at input; idle
  // below 0.10 core. "classic": load average, idle below 1.0, evict above 2.30.
  // Both after 15 min. None for any other name.
  static std::optional<PresenceRule> preset(const std::string& name);
  // An error message, or empty. A measure needs both thresholds, `become` not above
  // `stay`; times must not be negative.
  std::string problem() const;
};

// AWAY with the reason SETTLING: the owner has gone again. Jobs that stayed go on; others may not
// come yet. With the reason WITHHELD: likewise, as a rule wants it.
struct PresenceVerdict {
  sublet_presence state = SUBLET_PRESENCE_ACTIVE;
  sublet_presence_reason reason = SUBLET_PRESENCE_BLIND;
  // Until the machine may become idle, if nothing is seen of the owner from now on: 0 when it
  // is, -1 when this cannot be told (a pause, a scripted owner, blindness).
  int64_t ms_until_idle = -1;
  int64_t since = 0;      // instant of the sample that changed the state
  bool burdened = false;  // ACTIVE, and lingering jobs slow the owner down

  // Whether the owner is here and no job may stay, in whichever mode (protocol/leaving.h).
  bool is_strict() const {
    return state != SUBLET_PRESENCE_AWAY && (burdened || !sublet_may_stay(reason));
  }
};
// Whether everybody must be told now: the owner came or went, jobs may not stay any longer, or
// others may come.
bool is_news(const PresenceVerdict& before, const PresenceVerdict& after);

class OwnerPresence {
 public:
  explicit OwnerPresence(const PresenceRule& rule) : rule_(rule) {}

  // The verdict after this sample. Active until the first one. A sample that is
  // not later than the one before is treated as blindness.
  const PresenceVerdict& update(const PresenceSample& sample);
  // Whether what this reason stands for would keep jobs away or end their stay by itself.
  bool speaks_against_jobs(sublet_presence_reason reason, const PresenceSample& sample) const;
  // The verdict at `now`: no sample for longer than max_gap_ms is blindness.
  PresenceVerdict at(int64_t now) const;

 private:
  // Why this sample ends or prevents idleness, by the `stay` thresholds if `idle`, else
  // by the `become` thresholds; SUBLET_PRESENCE_NONE if it does not.
  sublet_presence_reason disturbance(const PresenceSample& sample, bool idle) const;
  bool disturbs(sublet_presence_reason reason, const PresenceSample& sample, bool idle) const;
  bool load_disturbs(const PresenceSample& sample, bool idle) const;
  sublet_presence_reason blindness(const PresenceSample& sample) const;
  // ms_until_idle of a sample that shows the owner.
  int64_t until_idle_after(sublet_presence_reason disturbed) const;
  // False: a rule keeps jobs away, which the verdict says now.
  bool rules_permit(const PresenceSample& sample, bool idle);
  // The owner has gone again, but not for idle_time_ms.
  bool is_settling() const {
    return verdict_.state == SUBLET_PRESENCE_AWAY && verdict_.reason == SUBLET_PRESENCE_SETTLING;
  }
  // Jobs that are here may go on, but others may not come.
  bool is_closed() const {
    return verdict_.state == SUBLET_PRESENCE_AWAY &&
           !sublet_jobs_may_come(verdict_.state, verdict_.reason);
  }
  void enter(sublet_presence state, sublet_presence_reason reason, int64_t ms_until_idle);

  PresenceRule rule_;
  PresenceVerdict verdict_;
  std::optional<int64_t> last_;         // instant of the last sample
  std::optional<int64_t> quiet_since_;  // first of the consecutive quiet samples
  int64_t ruled_until_ = 0;             // rule_rest_ms() after a rule last evicted or spoke on
};

// The jobs' part of the load averages. Like the kernel's, this is an exponential
// average with the same time constants, but of the jobs' runnable processes alone. It
// decays after the jobs end, as the kernel's averages do.
class LoadCorrection {
 public:
  // `runnable`: average number of the jobs' runnable processes over the `seconds`
  // since the last call.
  void add(double seconds, double runnable);
  // The owner's part of load average number i (0: 1 min, 1: 5 min, 2: 15 min).
  double owners(double load, size_t i) const;

 private:
  std::array<double, 3> jobs_ = {0, 0, 0};
};

}  // namespace sublet::protocol

#endif  // SUBLET_PROTOCOL_PRESENCE_H_
