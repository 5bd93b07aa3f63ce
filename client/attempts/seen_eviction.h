// An eviction as this daemon saw it, in case the shepherd cannot tell its steps.
#ifndef SUBLET_CLIENT_ATTEMPTS_SEEN_EVICTION_H_
#define SUBLET_CLIENT_ATTEMPTS_SEEN_EVICTION_H_

#include <cstdint>

#include "protocol/frame.h"

namespace sublet::client {

// CLOCK_BOOTTIME, ns; 0: it did not happen, or is not known.
struct SeenEviction {
  int64_t sensed = 0;                                    // its cause
  int64_t frozen = 0;                                    // by this daemon
  int64_t gone = 0;                                      // no process was left
  sublet_presence_reason reason = SUBLET_PRESENCE_NONE;  // if the owner was the cause

  bool operator==(const SeenEviction&) const = default;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_SEEN_EVICTION_H_
