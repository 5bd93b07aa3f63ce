// The agent's loop: what the desktop shows goes to the load monitor. Uses the CPU only when
// somebody uses the desktop, or for a ping every ten seconds.
#ifndef SUBLET_LOADMON_AGENT_AGENT_H_
#define SUBLET_LOADMON_AGENT_AGENT_H_

#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "loadmon/agent/desktop.h"
#include "loadmon/agent/monitor_link.h"
#include "loadmon/agent/reports.h"

namespace sublet::agent {

class Agent {
 public:
  // Opens the desktop of this session. Throws as open_desktop().
  explicit Agent(const std::vector<std::string>& folders);

  // Until the desktop goes: throws DesktopGone then.
  [[noreturn]] void run();

 private:
  void watch(int fd);
  void report_if(bool wanted, int64_t now);
  void report_full_screen_if(bool wanted, int64_t now);
  void connect(int64_t now);
  // For epoll_wait: milliseconds until something is due, -1: nothing is.
  int patience(int64_t now) const;

  UniqueFd events_;
  Reports reports_;
  FullScreenReports full_screen_;
  std::unique_ptr<MonitorLink> monitor_;  // null until the desktop is open
  std::unique_ptr<Desktop> desktop_;
};

}  // namespace sublet::agent

#endif  // SUBLET_LOADMON_AGENT_AGENT_H_
