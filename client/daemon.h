// Assembles sublet-client. The main thread runs the reactor and owns the attempts
// and the connection to the monitor; the session thread keeps the machine
// registered; the reporter thread reports starts and ends; a few workers move
// files; the ORB's threads pass orders to the OrderDesk. Threads communicate by
// posting tasks and setting flags; no lock is ever held during disk or network I/O.
#ifndef SUBLET_CLIENT_DAEMON_H_
#define SUBLET_CLIENT_DAEMON_H_

#include <memory>

#include "client/settings.h"

namespace sublet::client {

// Runs until it is stopped; returns the exit code. Throws std::exception, whose
// text can be shown to users, if it cannot start.
int run_client(const ClientSettings& settings);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_DAEMON_H_
