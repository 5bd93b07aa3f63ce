// TCP connections for TLS. Any thread.
#ifndef SUBLET_TRANSPORT_TLS_CONNECT_H_
#define SUBLET_TRANSPORT_TLS_CONNECT_H_

#include <netdb.h>

#include <chrono>

#include "base/unique_fd.h"

namespace sublet {

// Waits for POLLIN or POLLOUT; false after `until`.
bool wait_for(int socket, short events, std::chrono::steady_clock::time_point until);

// Connects a non-blocking socket to the first reachable one of these addresses. The
// time is divided equally among the remaining ones, so that an address that does not
// answer leaves time for the next. Returns 0, or the errno of the last.
int connect_to_any(const addrinfo* addresses, std::chrono::steady_clock::time_point until,
                   UniqueFd* socket);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_CONNECT_H_
