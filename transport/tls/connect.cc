#include "transport/tls/connect.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "transport/tls/socket.h"

namespace sublet {
namespace {

using Steady = std::chrono::steady_clock;

int connect_to(const addrinfo& address, Steady::time_point until, UniqueFd* out) {
  UniqueFd socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno;
  set_options(socket.get());
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(socket.get(), POLLOUT, until)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return error;
  }
  *out = std::move(socket);
  return 0;
}

}  // namespace

bool wait_for(int socket, short events, Steady::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Steady::now()).count();
    if (left <= 0) return false;
    pollfd one{socket, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

int connect_to_any(const addrinfo* addresses, Steady::time_point until, UniqueFd* socket) {
  int left = 0;
  for (const addrinfo* one = addresses; one != nullptr; one = one->ai_next) ++left;
  int error = ETIMEDOUT;
  for (const addrinfo* one = addresses; one != nullptr; one = one->ai_next, --left) {
    const auto now = Steady::now();
    error = connect_to(*one, now + (until - now) / left, socket);
    if (error == 0) return 0;
  }
  return error;
}

}  // namespace sublet
