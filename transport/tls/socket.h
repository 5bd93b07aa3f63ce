// Options of the TCP sockets used for TLS.
#ifndef SUBLET_TRANSPORT_TLS_SOCKET_H_
#define SUBLET_TRANSPORT_TLS_SOCKET_H_

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace sublet {

// Small messages are sent at once. A peer that has vanished is detected within 35 s
// while idle, and within 20 s while data is being sent.
inline void set_options(int socket) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_SOCKET_H_
