// When the agent tells the load monitor that its owner is here: at once after silence, after two
// seconds that input goes on, then every ten seconds as long as it does, and when it ends if the
// last report is older than half a second. So the monitor is never wrong about the last input by
// more than two seconds, and a hand that stays on the mouse hardly wakes it up. Pure; instants in
// ns. Not thread-safe.
#ifndef SUBLET_LOADMON_AGENT_REPORTS_H_
#define SUBLET_LOADMON_AGENT_REPORTS_H_

#include <cstdint>
#include <limits>

#include "protocol/frame.h"

namespace sublet::agent {

class Reports {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr int64_t kGoesOn = 2'000'000'000;
  static constexpr int64_t kRepeat = SUBLET_AGENT_GOES_ON_NS;

  // Until the desktop says whether it is quiet, nothing is reported for kGoesOn.
  explicit Reports(int64_t now) : due_(now + kGoesOn) {}

  // Each returns whether to report now. Two reports are SUBLET_AGENT_PAUSE_NS apart.
  bool active(int64_t now);
  bool quiet(int64_t now);
  // At due() or later.
  bool timer(int64_t now);
  // To a monitor that knows nothing yet.
  bool connected(int64_t now);

  int64_t due() const { return due_; }
  // What the last report says: input goes on until the next.
  bool goes_on() const { return goes_on_; }

 private:
  enum class State { kUnknown, kActive, kQuiet };

  bool report(int64_t now);

  State state_ = State::kUnknown;
  int64_t active_since_ = 0;
  bool goes_on_ = false;
  int64_t due_;
  int64_t reported_ = -kRepeat;
};

// When the agent says whether a full-screen program is in front: at once, but not more often than
// every second. Pure, as above.
class FullScreenReports {
 public:
  static constexpr int64_t kPause = 1'000'000'000;

  // Each returns whether to say now what is() is.
  bool changed(bool is, int64_t now);
  // At due() or later.
  bool timer(int64_t now);
  // To a monitor that knows nothing yet.
  bool connected(int64_t now);

  bool is() const { return is_; }
  int64_t due() const { return due_; }

 private:
  bool is_ = false;
  bool said_ = false;
  int64_t said_at_ = -kPause;
  int64_t due_ = Reports::kNever;
};

}  // namespace sublet::agent

#endif  // SUBLET_LOADMON_AGENT_REPORTS_H_
