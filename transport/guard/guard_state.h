// What all guarded connections of the process share: who is admitted, how many
// there are, what is counted and reported. Without the ORB.
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
  // Bytes of the largest message that a peer may send, fragments together.
  size_t max_message = 2u << 20;
  // How long in all a peer may keep us waiting for the rest of one message; 0:
  // for ever.
  int message_timeout_ms = 3000;
  // Requests are admitted on connections that this process dialled.
  bool may_be_called_back = false;
  // Accepted connections at a time; see OrbSettings.
  size_t max_connections = 16384;
  size_t max_connections_per_uid = 1024;
  std::function<bool(uint32_t uid)> admit;
  // The user at the other end of every dialled connection, or root.
  std::optional<uint32_t> server_uid;
  // In place of connecting to a server's Unix socket: a connection to the
  // pool's server, checked already. Not valid: none within that time, and said
  // why.
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

// Threads: any.
class GuardState {
 public:
  explicit GuardState(const GuardSettings& settings) : settings_(settings) {}

  const GuardSettings& settings() const { return settings_; }

  // Decides on a newcomer and counts him in; reports a refusal.
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

// Made once, by install_guarded_transport(), and never destroyed: connections
// may outlive every static.
extern GuardState* g_guard;

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_GUARD_STATE_H_
