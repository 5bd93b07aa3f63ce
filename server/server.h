// Assembles sublet-server: store, brain, spool, dispatcher, servants and ORB
// (docs/architecture.md). Runs in the process that the supervisor restarts.
//
// Threads: the main thread only.
#ifndef SUBLET_SERVER_SERVER_H_
#define SUBLET_SERVER_SERVER_H_

#include "server/settings.h"
#include "server/vital_signs.h"

namespace sublet::server {

// Serves until SIGTERM or SIGINT; returns the exit status. Throws StoreError,
// FileError or OrbError if the server cannot start.
int serve(const ServerSettings& settings, VitalSigns* signs);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SERVER_H_
