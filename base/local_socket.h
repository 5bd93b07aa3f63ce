// Unix sockets with names in the file system. Every descriptor is
// close-on-exec. Paths longer than the kernel's 107 bytes work as long as
// their last part has at most 80. Any thread.
#ifndef SUBLET_BASE_LOCAL_SOCKET_H_
#define SUBLET_BASE_LOCAL_SOCKET_H_

#include <sys/types.h>

#include <string>

#include "base/os_error.h"
#include "base/unique_fd.h"

namespace sublet {

enum class SocketKind {
  seqpacket,  // whole messages
  stream,
};

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

// Binds and listens. A socket left there by a dead process is replaced; one that
// accepts connections is an OsError (EADDRINUSE), as is a file that is not a socket.
// The socket has `mode` before anyone can connect.
UniqueFd listen_local(SocketKind kind, const std::string& path, mode_t mode, int backlog,
                      bool non_blocking = false);
// Throws OsError (ENOENT, ECONNREFUSED: no listener; EACCES; EAGAIN: the
// backlog is full and non_blocking was set).
UniqueFd connect_local(SocketKind kind, const std::string& path, bool non_blocking = false);
// The next connection; invalid if none is waiting (non-blocking listener) or if it was
// aborted. Throws OsError, EMFILE among others.
UniqueFd accept_local(int listener, bool non_blocking = false);
// The peer's identity when it connected (or listened), from the kernel.
PeerCredentials peer_credentials(int socket);

}  // namespace sublet

#endif  // SUBLET_BASE_LOCAL_SOCKET_H_
