// The shepherd's sockets: the connection to the monitor, which reports the owner's presence, the
// link to the client, and `control`, for the client's requests. Frames only (protocol/frame.h);
// nothing here blocks after connect().
#ifndef SUBLET_CLIENT_SHEPHERD_LINKS_H_
#define SUBLET_CLIENT_SHEPHERD_LINKS_H_

#include <stdint.h>

#include "protocol/frame.h"

namespace sublet::shepherd {

enum class Received { frame, nothing, lost };

// Receives the next frame; skips anything else.
Received receive_frame(int socket, sublet_frame* frame);
// The same of the next RUN and the descriptor that comes with it. Skips those without one.
Received receive_order(int socket, sublet_frame* frame, int* descriptor);
// Whether nobody is at the other end, whatever is left to read.
bool is_hung_up(int socket);
bool send_frame(int socket, const sublet_frame& frame);
// Whether, according to the kernel, the peer is root or has our account.
bool trusted_peer(int socket);

// Returns a connection to the monitor, or -1 with errno. Waits for a busy monitor no
// longer than SUBLET_MONITOR_SILENCE_NS.
int connect_monitor(const char* path);

// A socket that listens on `control` in the current folder. -1 with errno.
int listen_for_client();

// The connection that the client made with its order; and, for a client that was restarted, those
// made to `control` in the current folder. It may connect before its old connection is seen to be
// closed.
class Control {
 public:
  static constexpr int kConnections = 4;

  void add(int connection);
  int connection(int i) const { return connections_[i]; }
  void accept(int listener);
  void drop(int i);
  void send_all(const sublet_frame& frame);

 private:
  int connections_[kConnections] = {-1, -1, -1, -1};
  int oldest_ = 0;
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_LINKS_H_
