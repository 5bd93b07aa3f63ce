// The shepherd's two sockets: to the monitor, which says whether the owner is
// here, and `control`, where the client asks. Frames only (protocol/frame.h);
// nothing here blocks after connect().
#ifndef SUBLET_CLIENT_SHEPHERD_LINKS_H_
#define SUBLET_CLIENT_SHEPHERD_LINKS_H_

#include <stdint.h>

#include "protocol/frame.h"

namespace sublet::shepherd {

enum class Received { frame, nothing, lost };

// The next frame; anything else is skipped.
Received receive_frame(int socket, sublet_frame* frame);
bool send_frame(int socket, const sublet_frame& frame);
// According to the kernel, the peer is root or has our account.
bool trusted_peer(int socket);

// A connection to the monitor, or -1 with errno. Waits for a busy monitor no
// longer than its allowed silence.
int connect_monitor(const char* path);

// Listens on `control` in the current folder and talks to the client; a client
// that connects again (after its restart) may do so while the old connection
// still seems to live.
class Control {
 public:
  static constexpr int kConnections = 4;

  bool listen();
  int listener() const { return listener_; }
  int connection(int i) const { return connections_[i]; }
  void accept();
  void drop(int i);
  void send_all(const sublet_frame& frame);

 private:
  int listener_ = -1;
  int connections_[kConnections] = {-1, -1, -1, -1};
  int oldest_ = 0;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_LINKS_H_
