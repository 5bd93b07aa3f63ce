// Which graphical sessions the agents of desktops show. An agent speaks for one session of its own
// account. It names its X server or compositor; where systemd has put that process into a session,
// it is this one, whatever else the agent says. One display shows one session, however many agents
// watch it. Pure but for session_of_process().
#ifndef SUBLET_LOADMON_SENSES_SHOWN_SESSIONS_H_
#define SUBLET_LOADMON_SENSES_SHOWN_SESSIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/frame.h"
#include "protocol/place.h"

namespace sublet::loadmon {

// As logind knows it.
struct Session {
  std::string id;
  uid_t account = 0;
  std::string type;      // "x11", "wayland", "tty", ...
  std::string category;  // logind's class: "user", "greeter", "background", ...
  std::string state;     // "active", "online", "closing"
  std::string display;   // of X11: ":0"; "": not known
  bool remote = false;
  bool locked = false;
  bool active = false;  // in the foreground of its seat

  bool is_somebody() const { return category == "user" && state != "closing"; }
  bool is_graphical() const { return type == "x11" || type == "wayland" || type == "mir"; }
};

// What one live agent watches.
struct WatchedDesktop {
  uid_t uid = 0;
  pid_t pid = 0;
  sublet_desktop desktop = SUBLET_DESKTOP_X11;
  pid_t server = 0;     // the X server or compositor; 0: not known
  int64_t display = 0;  // of X11 on this machine: its number + 1; 0: not known
  // logind's ids of the sessions in which server and agent run; "": in none.
  std::string server_session = {}, agent_session = {};
  protocol::Place place = {};  // "X11 :0"
  bool full_screen = false;    // a full-screen program is in front
  int64_t touched_at = 0;      // last input, or when the agent came; CLOCK_BOOTTIME, ns
};

constexpr size_t kNoSession = SIZE_MAX;

// For each desktop the place in `sessions` of the one that it shows, or kNoSession. `sessions`: the
// graphical ones.
std::vector<size_t> shown_sessions(const std::vector<WatchedDesktop>& desktops,
                                   const std::vector<Session>& sessions);

// The id of the session to which systemd assigned a process, from the text of /proc/PID/cgroup. "":
// none, as for what a user's own systemd started.
std::string session_in_cgroups(const std::string& text);
// The same of a process; "" also if it has ended. `root`: "" or, in tests, a folder with proc/.
std::string session_of_process(const std::string& root, pid_t pid);

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_SHOWN_SESSIONS_H_
