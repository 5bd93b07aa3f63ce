// Carries between the server and this machine's load monitor who is logged in where: the monitor's
// rules may count while a user is logged in anywhere in the pool (docs/load-monitor.md, Rules).
// Only if the owner wants it (`pool_logins`).
//
// The thread that renews the lease only; exchange() may wait for the monitor for a second.
#ifndef SUBLET_CLIENT_MACHINE_POOL_LOGINS_H_
#define SUBLET_CLIENT_MACHINE_POOL_LOGINS_H_

#include <string>
#include <vector>

#include "client/link/server_calls.h"

namespace sublet::client {

class PoolLogins {
 public:
  // monitor_folder: its owner.sock is there.
  explicit PoolLogins(const std::string& monitor_folder)
      : socket_(monitor_folder + "/owner.sock") {}

  // What the next renewal says.
  const LoginsReport& report() const { return report_; }
  // Passes the server's answer on, and hears from the monitor what the next renewal is to say. If
  // the monitor does not answer, that is nothing.
  void exchange(const LoginsAnswer& answer);

 private:
  const std::string socket_;
  LoginsReport report_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_POOL_LOGINS_H_
