// Those who want to know about the owner: the client and the shepherds of this
// machine, each on its own connection. Runs on the reactor's thread.
#ifndef SUBLET_LOADMON_LISTENERS_H_
#define SUBLET_LOADMON_LISTENERS_H_

#include <ace/Event_Handler.h>
#include <ace/Reactor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "loadmon/attempts.h"
#include "protocol/frame.h"

namespace sublet::loadmon {

class Listeners;

// One connection. Kept for another one after it has closed, because a reactor
// may still hold its address.
class Listener : public ACE_Event_Handler {
 public:
  enum class Role { none, client, shepherd };

  explicit Listener(Listeners* owner) : owner_(owner) {}
  ACE_HANDLE get_handle() const override { return fd_.get(); }
  int handle_input(ACE_HANDLE) override;

 private:
  friend class Listeners;
  Listeners* owner_;
  UniqueFd fd_;
  Role role_ = Role::none;
  pid_t pid_ = 0;
  Attempt* attempt_ = nullptr;  // of a shepherd
  int64_t hello_by_ = 0;        // until it has said who it is
  bool full_ = false;           // its socket did not take the last frame
};

class Listeners {
 public:
  struct Hooks {
    std::function<int64_t()> now;                              // CLOCK_BOOTTIME, ns
    std::function<sublet_frame()> current;                     // the state, as a frame
    std::function<Attempt*(uint64_t, uint32_t)> find_attempt;  // never null
    std::function<void(Attempt*)> shepherd_left;
    std::function<void()> changed;  // a listener came or went
  };

  Listeners(ACE_Reactor* reactor, Attempts* attempts, size_t most, Hooks hooks);
  ~Listeners();

  // Takes a new connection of process `pid`; refuses it when there are `most`.
  void add(UniqueFd fd, pid_t pid);

  // The eviction path. To the shepherds first, then to the others.
  void evict(const sublet_frame& frame, int64_t now) noexcept;
  // The heartbeat, or that the owner has gone.
  void tell(const sublet_frame& frame) noexcept;
  // Closes those that never said who they are.
  void close_mute(int64_t now);
  // When close_mute() has to be called next.
  int64_t due() const;

  size_t count() const { return count_; }
  // There is a shepherd, or a listener that missed a frame.
  bool needs_heartbeat() const;
  // Of the clients and shepherds.
  std::vector<pid_t> pids() const;

 private:
  friend class Listener;
  // False when there is nothing more to read and the connection stays open.
  bool read_one(Listener* listener);
  void hello(Listener* listener, const sublet_frame& frame);
  void close(Listener* listener);
  bool send(Listener* listener, const sublet_frame& frame) noexcept;
  void ask(Listener* listener, const sublet_frame& frame, int64_t now) noexcept;

  ACE_Reactor* reactor_;
  Attempts* attempts_;
  size_t most_;
  Hooks hooks_;
  std::vector<std::unique_ptr<Listener>> listeners_;  // the closed ones too
  size_t count_ = 0;
  bool refused_ = false;  // said in the log that there are too many
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_LISTENERS_H_
