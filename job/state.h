// A job's states, with the values of idl/types.idl. Open: an unknown value is shown as a
// number.
#ifndef SUBLET_JOB_STATE_H_
#define SUBLET_JOB_STATE_H_

#include <cstdint>

namespace sublet {

enum JobState : uint32_t {
  kWaiting = 1,
  kPlaced = 2,
  kRunning = 3,
  kHeld = 4,
  kDone = 5,
  kFailed = 6,
  kRemoved = 7,
  kSuspended = 8,
  kDelivering = 9
};

// Final states never change again.
constexpr bool is_final(uint32_t state) {
  return state == kDone || state == kFailed || state == kRemoved;
}

}  // namespace sublet

#endif  // SUBLET_JOB_STATE_H_
