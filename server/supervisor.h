// The small parent of the server: restarts it when it dies, when it no longer
// answers and when it spins with nobody asking; gives up, saying why, after
// repeated instant deaths. No ORB, no threads, no locks.
#ifndef SUBLET_SERVER_SUPERVISOR_H_
#define SUBLET_SERVER_SUPERVISOR_H_

#include <string>
#include <vector>

#include "base/service_notify.h"
#include "server/vital_signs.h"

namespace sublet::server {

struct SupervisorSettings {
  std::string socket;       // of the server, to ask whether it answers
  int64_t watchdog_ms = 0;  // a server without a sign of life for this long is killed
};

// Runs `command` with "--supervised FD" added again and again; returns the exit
// status for the whole program: the child's own when it ends in good order (0
// after SIGTERM or SIGINT, which are passed on; 1 when it could not start).
// The child is executed afresh, never forked only: forks of a process in which
// the ORB is loaded share its wake-up pipes.
//
// It is also the one who speaks to the system's manager: ready when the child
// serves for the first time, alive while its own loop goes round. The child's
// health is its own matter: the manager restarts who does not look after it.
int supervise(const SupervisorSettings& settings, const std::vector<std::string>& command,
              ServiceNotify& manager);

// In the child: the page behind the descriptor that --supervised names; and its
// promise to end when the supervisor does.
VitalSigns* supervised(int fd);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SUPERVISOR_H_
