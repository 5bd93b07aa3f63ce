// State shared by all guarded connections of the process: admission, limits, counters
// and reports. Independent of the ORB.
#ifndef SUBLET_TRANSPORT_GUARD_GUARD_STATE_H_
#define SUBLET_TRANSPORT_GUARD_GUARD_STATE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "transport/peer.h"

namespace sublet {

struct GuardSettings {
  // Bytes of the largest message that a peer may send, all fragments together.
  size_t max_message = 2u << 20;
  // How long in total a peer may take to complete one message; 0: no limit.
  int message_timeout_ms = 3000;
  // Requests are accepted on connections that this process opened.
  bool may_be_called_back = false;
  // Accepted connections at a time; see OrbSettings.
  size_t max_connections = 16384;
  size_t max_connections_per_uid = 1024;
  std::function<bool(uint32_t uid)> admit;
  // The user required at the other end of every connection that this process opens;
  // root is accepted, too.
  std::optional<uint32_t> server_uid;
  // Used instead of connecting to a server's Unix socket: returns a verified connection
  // to the pool's server. Not valid: it failed or timed out, and has reported why.
  std::function<UniqueFd(int timeout_ms)> dial;
  std::function<void(std::string_view line)> log;
};

struct GuardCounters {
  uint64_t accepted = 0;
  uint64_t refused = 0;
  uint64_t dialled = 0;
  uint64_t violations = 0;
  uint64_t open_now = 0;
};

// Thread-safe.
class GuardState {
 public:
  explicit GuardState(const GuardSettings& settings) : settings_(settings) {}

  const GuardSettings& settings() const { return settings_; }

  // Decides whether to admit a new connection and counts it; reports a refusal.
  bool enter(const Peer& peer);
  void leave(uint64_t id);
  // At most ten lines a second.
  void report(const std::string& line);
  // Why the last end point could not be set up.
  void fail(const std::string& why);
  std::string error() const;
  GuardCounters counters() const;

  std::atomic<uint64_t> accepted{0};
  std::atomic<uint64_t> refused{0};
  std::atomic<uint64_t> dialled{0};
  std::atomic<uint64_t> violations{0};

 private:
  const GuardSettings settings_;
  mutable std::mutex mutex_;
  std::map<uint64_t, size_t> open_of_;
  size_t open_ = 0;
  std::string error_;
  std::chrono::steady_clock::time_point second_{};
  int lines_ = 0;
  uint64_t not_shown_ = 0;
};

// Created once, by install_guarded_transport(), and never destroyed: connections may
// outlive all static objects.
extern GuardState* g_guard;

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_GUARD_STATE_H_
