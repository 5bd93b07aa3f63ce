// sublet-server, assembled: store, brain, spool, dispatcher, servants and ORB
// (docs/architecture.md). Lives in the process that the supervisor restarts.
//
// Threads: run() and everything else here belong to the main thread.
#ifndef SUBLET_SERVER_SERVER_H_
#define SUBLET_SERVER_SERVER_H_

#include "server/settings.h"
#include "server/vital_signs.h"

namespace sublet::server {

// Serves until SIGTERM or SIGINT; returns the exit status. Throws what keeps
// the server from starting: StoreError, FileError, OrbError.
int serve(const ServerSettings& settings, VitalSigns* signs);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SERVER_H_
