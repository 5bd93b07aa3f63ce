// Starts load monitors, again and again if need be, and says once why none can run. Any
// thread but the reactor's: it waits for the program.
#ifndef SUBLET_CLIENT_MACHINE_MONITOR_START_H_
#define SUBLET_CLIENT_MACHINE_MONITOR_START_H_

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"

namespace sublet::client {

class MonitorStart {
 public:
  // argv of sublet-loadmon, and the socket that it will listen on.
  MonitorStart(std::vector<std::string> command, std::string socket);

  // Starts a monitor and returns its pid, which the caller must reap. First asks the program
  // whether it takes its settings. If it does not, or cannot be started, logs why, unless that
  // was the last thing logged. in_vain: no monitor has answered since the last call.
  std::optional<pid_t> start(bool in_vain);

 private:
  pid_t start_one();
  // What the program says against its settings; "": nothing, or it does not answer. If it cannot
  // even be killed, it stays in asked_. Throws OsError.
  std::string refusal_of_settings();
  // False while the last one that was asked still hangs.
  bool ask_again();
  void complain(const std::string& what);

  const std::vector<std::string> command_;
  const std::string socket_;
  std::mutex one_at_a_time_;
  std::string complaint_;                // the last one that was logged
  bool started_ = false;                 // one that has not answered
  std::optional<SpawnedProcess> asked_;  // about its settings
  bool said_in_vain_ = false;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_MONITOR_START_H_
