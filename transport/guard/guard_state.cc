#include "transport/guard/guard_state.h"

#include <unistd.h>

#include <algorithm>

namespace sublet {
namespace {

constexpr size_t kPlacesKept = 32;
constexpr int kLinesPerSecond = 10;

}  // namespace

GuardState* g_guard = nullptr;

bool GuardState::enter(const Peer& peer) {
  std::string why;
  const auto uid = peer.uid();
  if (uid && settings_.admit && !settings_.admit(*uid)) {
    why = "not admitted";
  } else {
    std::lock_guard<std::mutex> lock(mutex_);
    const bool counted = !uid || (*uid != 0 && *uid != ::geteuid());
    size_t& own = open_of_[peer.id];
    // The last places are reserved for root and our own user, so that the watchdog and
    // the administrator can always connect.
    const size_t places = settings_.max_connections;
    const size_t kept = counted ? std::min<size_t>(places / 4, kPlacesKept) : 0;
    if (open_ >= places - kept) {
      why = "too many connections";
    } else if (counted && own >= settings_.max_connections_per_uid) {
      why = "too many connections from this user";
    } else {
      ++own;
      ++open_;
      ++accepted;
      return true;
    }
    if (own == 0) open_of_.erase(peer.id);
  }
  ++refused;
  report("connection of " + peer.text() + " refused: " + why);
  return false;
}

void GuardState::leave(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  --open_;
  const auto own = open_of_.find(id);
  if (--own->second == 0) open_of_.erase(own);
}

void GuardState::report(const std::string& line) {
  if (!settings_.log) return;
  std::string text = line;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      lines_ = 0;
    }
    if (++lines_ > kLinesPerSecond) {
      ++not_shown_;
      return;
    }
    if (not_shown_ > 0) text += " (" + std::to_string(not_shown_) + " such lines not shown)";
    not_shown_ = 0;
  }
  settings_.log(text);
}

void GuardState::fail(const std::string& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  error_ = why;
}

std::string GuardState::error() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return error_;
}

GuardCounters GuardState::counters() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {accepted, refused, dialled, violations, open_};
}

}  // namespace sublet
