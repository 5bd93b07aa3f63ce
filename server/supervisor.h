// The parent process of the server: restarts it when it dies, no longer answers, or
// uses the CPU without any requests; gives up with a log message after repeated
// crashes soon after the start. No ORB, no threads, no locks.
#ifndef SUBLET_SERVER_SUPERVISOR_H_
#define SUBLET_SERVER_SUPERVISOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/service_notify.h"
#include "server/vital_signs.h"

namespace sublet::server {

struct SupervisorSettings {
  std::string socket;       // of the server, to check whether it answers
  int64_t watchdog_ms = 0;  // a server without a sign of life for this long is killed
};

// Runs `command` with "--supervised FD" appended, and restarts it as needed; returns
// the exit status for the whole program: the child's if it exits normally (0 after
// SIGTERM or SIGINT, which are passed on; 1 if it could not start; kExitUsage if its
// settings are wrong, also after a restart). The child is always executed, not just
// forked: forks of a process with the ORB loaded share the ORB's wake-up pipes.
//
// Also notifies the service manager: ready when the child serves for the first time,
// and alive while the supervisor's own loop runs. Whether the child is alive is for
// the supervisor to check; the manager restarts a supervisor that hangs.
int supervise(const SupervisorSettings& settings, const std::vector<std::string>& command,
              ServiceNotify& manager);

// The pause before a restart, in ms, after `deaths` instant ones in a row: none after the
// first, then more and more.
constexpr int64_t restart_pause_ms(int deaths) { return 100 * (deaths > 0 ? deaths - 1 : 0); }

// In the child: maps the page of the descriptor given by --supervised, and makes this
// process end when the supervisor does.
VitalSigns* supervised(int fd);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SUPERVISOR_H_
