// The agent's connection to the load monitor, made again whenever it is lost. Never blocks.
// One thread.
#ifndef SUBLET_LOADMON_AGENT_MONITOR_LINK_H_
#define SUBLET_LOADMON_AGENT_MONITOR_LINK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "loadmon/agent/desktop.h"
#include "protocol/frame.h"

namespace sublet::agent {

class MonitorLink {
 public:
  // `folders`: where a load monitor may be, as from client_states().
  MonitorLink(std::vector<std::string> folders, const Desktop& desktop);

  // -1: there is no connection.
  int handle() const { return monitor_.get(); }
  // When to call connect(), ns; kNever while there is a connection.
  int64_t due() const;
  // True: there is a new connection, and the monitor knows what the agent watches.
  bool connect(int64_t now);
  // Reads what the monitor says. True: it has pinged, and waits for answer().
  bool read(int64_t now);
  // What cannot be sent ends the connection.
  void say_here(bool goes_on, int64_t now);
  void say_full_screen(bool is, int64_t now);
  void answer(int64_t now);

 private:
  void send(sublet_frame frame, int64_t now);
  void lost(int64_t now);

  const std::vector<std::string> folders_;
  const sublet_frame greeting_;
  UniqueFd monitor_;
  uint32_t ping_ = 0;  // sequence of the last one
  int64_t connected_at_ = 0;
  int64_t retry_at_ = 0;
  int64_t retry_after_;
  bool complained_ = false;
};

}  // namespace sublet::agent

#endif  // SUBLET_LOADMON_AGENT_MONITOR_LINK_H_
