// A plain TCP end point on 127.0.0.1, for programs of this host that speak IIOP
// and know no Unix sockets. The kernel is asked whose the socket at the other end
// is; who has none that it can name is refused.
#ifndef SUBLET_TRANSPORT_LOOPBACK_DOOR_H_
#define SUBLET_TRANSPORT_LOOPBACK_DOOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/unique_fd.h"

namespace sublet {

// The user who owns the other end of this TCP connection over 127.0.0.1, by the
// kernel's socket tables. Nothing: not on this host, closed by its owner, or a
// user that this process's user namespace has no number for. Any thread.
std::optional<uint32_t> loopback_peer_uid(int socket);

class LoopbackDoor {
 public:
  struct Hooks {
    // From a thread of the door's; must not block.
    std::function<void(UniqueFd, uint32_t uid)> arrived;
    std::function<void(std::string_view)> log;
  };
  // port 0: any. Throws OsError: the port is taken.
  LoopbackDoor(uint16_t port, Hooks hooks);
  // Lets nobody else in.
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
