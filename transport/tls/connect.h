// The TCP connection under TLS. Any thread.
#ifndef SUBLET_TRANSPORT_TLS_CONNECT_H_
#define SUBLET_TRANSPORT_TLS_CONNECT_H_

#include <netdb.h>

#include <chrono>

#include "base/unique_fd.h"

namespace sublet {

// False when the time is over first. events: POLLIN, POLLOUT.
bool wait_for(int socket, short events, std::chrono::steady_clock::time_point until);

// Connects to the first of these addresses that lets itself be reached; a socket
// that does not block. Those that do not answer share the time equally, so that
// one leaves time for the next. Returns 0, or the errno of the last.
int connect_to_any(const addrinfo* addresses, std::chrono::steady_clock::time_point until,
                   UniqueFd* socket);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_CONNECT_H_
