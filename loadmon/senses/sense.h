// One way to see the owner. Each sense fills in its part of a sample; the monitor asks them
// one after the other, on its only thread, so a sense must never block.
//
// A sense with an event comes before everything else: when its handle() is readable, the
// monitor calls notice(), judges, and tells; only afterwards does it meter anything.
#ifndef SUBLET_LOADMON_SENSES_SENSE_H_
#define SUBLET_LOADMON_SENSES_SENSE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "protocol/presence.h"

namespace sublet::loadmon {

// The load caused by the jobs and Sublet's own daemons since the last sample, to be
// subtracted.
struct JobsEffect {
  double cpu_seconds = 0;
  double runnable = 0;  // number of the jobs' runnable processes, now
};

// Input was seen at `seen_at` by the sense `by`, at `place`; another's younger input remains.
// `now`, `seen_at`: CLOCK_BOOTTIME, ns.
inline void note_input(int64_t now, int64_t seen_at, const char* by, const protocol::Place& place,
                       protocol::PresenceSample* sample) {
  constexpr int64_t kMs = 1'000'000;
  const int64_t age = std::max<int64_t>(0, now - seen_at) / kMs;
  if (sample->input_age_ms >= 0 && sample->input_age_ms <= age) return;
  sample->input_age_ms = age;
  sample->input_by = by;
  sample->input_place = place;
}

// The owner watches a film or is in a call; what was noted before remains.
inline void note_media(const char* by, const protocol::Place& place,
                       protocol::PresenceSample* sample) {
  if (sample->attends) return;
  sample->attends = true;
  sample->attends_by = by;
  sample->attends_place = place;
}

class Sense {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  virtual ~Sense() = default;
  // Short, for the log: "cpu", "terminals".
  virtual std::string name() const = 0;
  // Fills in its part of a new sample. `now`: CLOCK_BOOTTIME, ns. False: the sense failed,
  // which counts as the owner's presence.
  virtual bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) = 0;
  // A descriptor that becomes readable when something happened; -1: none.
  virtual int handle() const { return -1; }
  // Called when handle() is readable or next_notice() has come: drains handle(), and fills in what
  // it showed. `sample`: the last one, with the parts of all
  // senses; only its own may be changed. Nothing here may read a disk or look at processes
  // without need. False: as for sample().
  virtual bool notice(int64_t /*now*/, protocol::PresenceSample* /*sample*/) { return true; }
  // Why the last sample failed, for the log; "": there is nothing to add to the name.
  virtual std::string problem() const { return ""; }
  // What it cannot see on this machine, and what to do about it; "": nothing. Logged once.
  virtual std::string absence() const { return ""; }
  // Called after everybody has been told what a sample showed: time for bookkeeping.
  virtual void told(const protocol::PresenceVerdict& /*verdict*/) {}
  // The next time after `now` at which notice() is to be called without an event; kNever: none.
  virtual int64_t next_notice(int64_t /*now*/) const { return kNever; }
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_SENSE_H_
