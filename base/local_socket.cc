#include "base/local_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace sublet {
namespace {

// A path in the kernel's form. A path that is too long is reached through an open
// descriptor of its folder, which must therefore outlive the address.
struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
  UniqueFd folder;
};

Address address_of(const std::string& path, const char* doing) {
  Address address;
  std::string reachable = path;
  if (path.size() >= sizeof address.name.sun_path) {
    const std::string folder = folder_of(path);
    address.folder.reset(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.folder.valid()) throw OsError(errno, doing, path);
    reachable = "/proc/self/fd/" + std::to_string(address.folder.get()) + "/" +
                path.substr(path.find_last_of('/') + 1);
  }
  if (path.empty() || reachable.size() >= sizeof address.name.sun_path) {
    throw OsError(ENAMETOOLONG, doing, path, "its last part may have at most 80 bytes");
  }
  address.name.sun_family = AF_UNIX;
  memcpy(address.name.sun_path, reachable.c_str(), reachable.size() + 1);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + reachable.size() + 1);
  return address;
}

UniqueFd new_socket(SocketKind kind, bool non_blocking, const char* doing,
                    const std::string& path) {
  const int type = kind == SocketKind::seqpacket ? SOCK_SEQPACKET : SOCK_STREAM;
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | (non_blocking ? SOCK_NONBLOCK : 0), 0));
  if (!fd.valid()) throw OsError(errno, doing, path);
  return fd;
}

// 0 or errno.
int connect_to(int fd, const Address& address) {
  const auto* name = reinterpret_cast<const sockaddr*>(&address.name);
  while (connect(fd, name, address.length) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Makes room for a new socket: removes one without a listener.
void clear_stale(SocketKind kind, const std::string& path, const Address& address) {
  struct stat st;
  if (lstat(path.c_str(), &st) != 0) return;
  if (!S_ISSOCK(st.st_mode)) {
    throw OsError(EADDRINUSE, "listen on", path, "a file that is not a socket is in the way");
  }
  // Non-blocking: EAGAIN means that there is a listener whose backlog is full.
  UniqueFd probe = new_socket(kind, true, "listen on", path);
  const int code = connect_to(probe.get(), address);
  if (code == ENOENT) return;
  if (code == EACCES || code == EPERM) throw OsError(code, "listen on", path);
  if (code != ECONNREFUSED) {
    throw OsError(EADDRINUSE, "listen on", path, "another process answers there");
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) throw OsError(errno, "remove", path);
}

}  // namespace

UniqueFd listen_local(SocketKind kind, const std::string& path, mode_t mode, int backlog,
                      bool non_blocking) {
  const char* doing = "listen on";
  // Two processes that start at the same time must not take each other's socket, bound
  // but not yet listening, for a stale one.
  UniqueFd folder(open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) throw OsError(errno, doing, path);
  while (flock(folder.get(), LOCK_EX) != 0) {
    if (errno != EINTR) throw OsError(errno, doing, path);
  }
  const Address address = address_of(path, doing);
  clear_stale(kind, path, address);
  UniqueFd fd = new_socket(kind, non_blocking, doing, path);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) != 0) {
    throw OsError(errno, doing, path);
  }
  // Connecting is impossible before listen(), so the mode is set in time.
  if (chmod(path.c_str(), mode) != 0 || listen(fd.get(), backlog) != 0) {
    const int code = errno;
    unlink(path.c_str());
    throw OsError(code, doing, path);
  }
  return fd;
}

UniqueFd connect_local(SocketKind kind, const std::string& path, bool non_blocking) {
  const char* doing = "connect to";
  const Address address = address_of(path, doing);
  UniqueFd fd = new_socket(kind, non_blocking, doing, path);
  if (int code = connect_to(fd.get(), address)) {
    const bool nobody = code == ENOENT || code == ECONNREFUSED;
    throw OsError(code, doing, path,
                  nobody ? "no process listens there: is the daemon running?" : "");
  }
  return fd;
}

UniqueFd accept_local(int listener, bool non_blocking) {
  for (;;) {
    UniqueFd fd(
        accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | (non_blocking ? SOCK_NONBLOCK : 0)));
    if (fd.valid()) return fd;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ECONNABORTED) return UniqueFd();
    throw OsError(errno, "accept on", "a local socket");
  }
}

PeerCredentials peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    throw OsError(errno, "identify the peer of", "a local socket");
  }
  return {credentials.pid, credentials.uid, credentials.gid};
}

}  // namespace sublet
