#include "client/shepherd/links.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

#include "attempt/format.h"

namespace sublet::shepherd {
namespace {

bool set_address(sockaddr_un* address, const char* path) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address->sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  strcpy(address->sun_path, path);
  return true;
}

}  // namespace

Received receive_frame(int socket, sublet_frame* frame) {
  for (;;) {
    // MSG_TRUNC returns the real size of a longer packet, which is not a frame.
    ssize_t count = recv(socket, frame, sizeof *frame, MSG_DONTWAIT | MSG_TRUNC);
    if (count == static_cast<ssize_t>(sizeof *frame) && frame->magic == SUBLET_FRAME_MAGIC)
      return Received::frame;
    if (count == 0) return Received::lost;
    if (count < 0 && errno != EINTR) return errno == EAGAIN ? Received::nothing : Received::lost;
  }
}

Received receive_order(int socket, sublet_frame* frame, int* descriptor) {
  for (;;) {
    struct iovec bytes = {frame, sizeof *frame};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof *descriptor)];
    struct msghdr message = {};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    const ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count == 0) return Received::lost;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN ? Received::nothing : Received::lost;
    const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    if (!rights || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS ||
        rights->cmsg_len != CMSG_LEN(sizeof *descriptor))
      continue;
    memcpy(descriptor, CMSG_DATA(rights), sizeof *descriptor);
    if (count == static_cast<ssize_t>(sizeof *frame) && frame->magic == SUBLET_FRAME_MAGIC &&
        frame->kind == SUBLET_FRAME_RUN)
      return Received::frame;
    close(std::exchange(*descriptor, -1));
  }
}

bool is_hung_up(int socket) {
  pollfd peer = {socket, POLLRDHUP, 0};
  return poll(&peer, 1, 0) == 1;
}

bool send_frame(int socket, const sublet_frame& frame) {
  return socket >= 0 && send(socket, &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL) ==
                            static_cast<ssize_t>(sizeof frame);
}

bool trusted_peer(int socket) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == geteuid();
}

int connect_monitor(const char* path) {
  sockaddr_un address;
  if (!set_address(&address, path)) return -1;
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  struct timeval patience = {SUBLET_MONITOR_SILENCE_NS / 1000000000, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    if (trusted_peer(fd)) return fd;
    errno = EPERM;
  }
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int listen_for_client() {
  sockaddr_un address;
  if (!set_address(&address, SUBLET_CONTROL_SOCKET)) return -1;
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return -1;
  // It may have been left by a shepherd that died before writing its record.
  unlink(SUBLET_CONTROL_SOCKET);
  mode_t before = umask(0177);
  const bool bound = bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  umask(before);
  if (bound && listen(listener, Control::kConnections) == 0) return listener;
  const int error = errno;
  close(listener);
  errno = error;
  return -1;
}

void Control::accept(int listener) {
  int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (!trusted_peer(fd)) {
    close(fd);
    return;
  }
  add(fd);
}

void Control::add(int fd) {
  for (int& connection : connections_) {
    if (connection >= 0) continue;
    connection = fd;
    return;
  }
  close(connections_[oldest_]);
  connections_[oldest_] = fd;
  oldest_ = (oldest_ + 1) % kConnections;
}

void Control::drop(int i) {
  close(connections_[i]);
  connections_[i] = -1;
}

void Control::send_all(const sublet_frame& frame) {
  for (int connection : connections_) send_frame(connection, frame);
}

}  // namespace sublet::shepherd
