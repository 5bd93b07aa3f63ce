// The connections of the client and the shepherds of this machine, which are notified of
// the owner's presence. Reactor thread.
#ifndef SUBLET_LOADMON_LISTENERS_H_
#define SUBLET_LOADMON_LISTENERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "loadmon/attempts.h"
#include "protocol/frame.h"

namespace sublet::loadmon {

// One connection. After closing, the object is reused for another one rather than
// destroyed, because an event that was read already may hold its address.
struct Listener {
  enum class Role { none, client, shepherd };

  UniqueFd fd;
  Role role = Role::none;
  pid_t pid = 0;
  Attempt* attempt = nullptr;  // of a shepherd; null: its slot is empty
  int64_t hello_by = 0;        // deadline for its HELLO; 0: received
  bool full = false;           // its socket was full at the last frame
};

class Listeners {
 public:
  struct Hooks {
    std::function<int64_t()> now;                              // CLOCK_BOOTTIME, ns
    std::function<sublet_frame()> current;                     // the current state, as a frame
    std::function<Attempt*(uint64_t, uint32_t)> find_attempt;  // never null
    std::function<void(Attempt*)> shepherd_left;               // without having said that it ended
    std::function<void()> changed;  // a connection was made or closed, or sent HELLO
  };

  // Throws OsError.
  Listeners(Attempts* attempts, size_t most, Hooks hooks);

  // Readable when one of the connections is. They have an epoll descriptor of their own because
  // the reactor has an entry, in memory that is written to, for each number that a descriptor
  // may have; and beside many jobs there are many.
  int handle() const { return events_.get(); }
  // Reads what has come.
  void read_all();

  // Adds a new connection of process `pid`; refuses it if there are `most`.
  void add(UniqueFd fd, pid_t pid);

  // The eviction path: sends to the shepherds first, then to the client.
  void evict(const sublet_frame& frame, int64_t now) noexcept;
  // The same, where the owner was seen: to the clients, which note it.
  void explain(const sublet_frame& cause) noexcept;
  // Sends a heartbeat, or that the owner is away.
  void tell(const sublet_frame& frame) noexcept;
  // Closes connections that sent no HELLO in time.
  void close_mute(int64_t now);
  // When to call close_mute() next.
  int64_t due() const;

  size_t count() const { return count_; }
  // True if a shepherd runs an attempt, or a listener missed a frame.
  bool needs_heartbeat() const;
  // The processes of the clients and shepherds.
  std::vector<pid_t> pids() const;

 private:
  // Reads one frame. False if there is none, or if the connection was closed.
  bool read_one(Listener* listener);
  void hello(Listener* listener, const sublet_frame& frame);
  bool take_attempt(Listener* listener, const sublet_frame& frame);
  void ended(Listener* listener, const sublet_frame& frame);
  void ended(Listener* listener);
  static bool is_of(const Listener& listener, const sublet_frame& frame) {
    return listener.attempt->job == frame.job && listener.attempt->attempt == frame.attempt;
  }
  static bool has_empty_slot(const Listener& listener) {
    return listener.role == Listener::Role::shepherd && listener.attempt == nullptr;
  }
  void close(Listener* listener);
  bool send(Listener* listener, const sublet_frame& frame) noexcept;
  void ask(Listener* listener, const sublet_frame& frame, int64_t now) noexcept;

  UniqueFd events_;
  Attempts* attempts_;
  size_t most_;
  Hooks hooks_;
  std::vector<std::unique_ptr<Listener>> listeners_;  // including closed ones
  size_t count_ = 0;
  bool refused_ = false;  // the log says that there are too many
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_LISTENERS_H_
