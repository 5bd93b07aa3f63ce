// A plain TCP end point on 127.0.0.1, for programs on this host that use IIOP but do
// not support Unix sockets. The kernel is asked for the owner of the peer's socket; a
// peer whose owner it does not know is refused.
#ifndef SUBLET_TRANSPORT_LOOPBACK_DOOR_H_
#define SUBLET_TRANSPORT_LOOPBACK_DOOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/unique_fd.h"

namespace sublet {

// The user who owns the other end of this TCP connection over 127.0.0.1, from the
// kernel's socket tables. None: not on this host, closed by its owner, or a user that
// is not mapped in this process's user namespace. Any thread.
std::optional<uint32_t> loopback_peer_uid(int socket);

class LoopbackDoor {
 public:
  struct Hooks {
    // Called from the door's thread; must not block.
    std::function<void(UniqueFd, uint32_t uid)> arrived;
    std::function<void(std::string_view)> log;
  };
  // port 0: any. Throws OsError: the port is taken.
  LoopbackDoor(uint16_t port, Hooks hooks);
  // Stops accepting connections.
  ~LoopbackDoor();
  LoopbackDoor(const LoopbackDoor&) = delete;
  LoopbackDoor& operator=(const LoopbackDoor&) = delete;

  uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_LOOPBACK_DOOR_H_
