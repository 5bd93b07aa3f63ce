#include "loadmon/agent/reports.h"

namespace sublet::agent {

// Too soon after the last report it is put off, not left out.
bool Reports::report(int64_t now) {
  const int64_t earliest = reported_ + SUBLET_AGENT_PAUSE_NS;
  if (now < earliest) {
    due_ = earliest;
    return false;
  }
  const bool active = state_ == State::kActive;
  reported_ = now;
  goes_on_ = active && now - active_since_ >= kGoesOn;
  due_ = !active ? kNever : now + (goes_on_ ? kRepeat : kGoesOn);
  return true;
}

bool Reports::active(int64_t now) {
  if (state_ != State::kActive) active_since_ = now;
  state_ = State::kActive;
  return report(now);
}

bool Reports::quiet(int64_t now) {
  const bool stale = state_ == State::kActive && now - reported_ >= 2 * SUBLET_AGENT_PAUSE_NS;
  state_ = State::kQuiet;
  due_ = kNever;
  return (stale || goes_on_) && report(now);
}

bool Reports::timer(int64_t now) {
  if (now < due_) return false;
  return state_ == State::kUnknown ? active(now) : report(now);
}

bool Reports::connected(int64_t now) {
  if (state_ != State::kActive) return false;
  reported_ = now - SUBLET_AGENT_PAUSE_NS;
  return report(now);
}

bool FullScreenReports::changed(bool is, int64_t now) {
  is_ = is;
  due_ = is_ == said_ ? Reports::kNever : said_at_ + kPause;
  return timer(now);
}

bool FullScreenReports::timer(int64_t now) {
  if (now < due_) return false;
  said_ = is_;
  said_at_ = now;
  due_ = Reports::kNever;
  return true;
}

bool FullScreenReports::connected(int64_t now) {
  said_ = false;
  return changed(is_, now);
}

}  // namespace sublet::agent
