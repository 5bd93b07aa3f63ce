// The load monitor's means of detecting the owner. Each sense fills in its part of a
// sample; the monitor asks them one after the other, on its only thread, so a sense must
// never block.
#ifndef SUBLET_LOADMON_SENSES_SENSE_H_
#define SUBLET_LOADMON_SENSES_SENSE_H_

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

class Sense {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  virtual ~Sense() = default;
  // Short, for the log: "cpu", "input".
  virtual std::string name() const = 0;
  // `now`: CLOCK_BOOTTIME, ns. False: the sense failed, which counts as the owner's
  // presence.
  virtual bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) = 0;
  // Why the last sample failed, for the log; "": there is nothing to add to the name.
  virtual std::string problem() const { return ""; }
  // Called after everybody has been told what a sample showed: time for bookkeeping.
  virtual void told(const protocol::PresenceVerdict& /*verdict*/) {}
  // A descriptor that becomes readable when a sample should be taken at once; -1: none.
  // sample() drains it.
  virtual int handle() const { return -1; }
  // The next time after `now` at which a sample should be taken; kNever: none.
  virtual int64_t next_change(int64_t /*now*/) const { return kNever; }
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_SENSE_H_
