// sublet-client, put together. One thread, main's, runs the reactor and owns the
// attempts and the monitor's line; the session's thread keeps the machine
// registered; the reporter's tells of starts and ends; a few workers move files;
// the ORB's threads take orders at the OrderDesk. They talk by posting tasks and
// setting flags; no lock is ever held over disk or network.
#ifndef SUBLET_CLIENT_DAEMON_H_
#define SUBLET_CLIENT_DAEMON_H_

#include <memory>

#include "client/settings.h"

namespace sublet::client {

// Runs until it must stop; returns the exit code. Throws std::exception
// (of a kind whose text is for people) when it cannot start.
int run_client(const ClientSettings& settings);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_DAEMON_H_
