#include "loadmon/senses/shown_sessions.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "loadmon/process_tree.h"

namespace sublet::loadmon {
namespace {

// The number of an X display of this machine + 1, ":0.0" -> 1; 0: it is another's.
int64_t local_display(std::string_view name) {
  int64_t number = 0;
  if (!name.starts_with(":")) return 0;
  name.remove_prefix(1);
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && number >= 0 ? number + 1 : 0;
}

bool same_kind(const WatchedDesktop& desktop, const Session& session) {
  return desktop.uid == session.account &&
         (desktop.desktop == SUBLET_DESKTOP_X11) == (session.type == "x11");
}

bool server_is_of(const WatchedDesktop& desktop, const Session& session) {
  return desktop.uid == session.account && !session.id.empty() &&
         desktop.server_session == session.id;
}

// Unless the server runs in a session, which is the only one then.
bool may_show(const WatchedDesktop& desktop, const Session& session) {
  return same_kind(desktop, session) && desktop.server_session.empty() &&
         (session.type != "x11" || session.display.empty() ||
          local_display(session.display) == desktop.display);
}

bool agent_is_of(const WatchedDesktop& desktop, const Session& session) {
  return may_show(desktop, session) && desktop.agent_session == session.id;
}

bool has_display_of(const WatchedDesktop& desktop, const Session& session) {
  return may_show(desktop, session) && session.type == "x11" && !session.display.empty();
}

bool same_server(const WatchedDesktop& one, const WatchedDesktop& other) {
  return one.uid == other.uid && one.server != 0 && one.server == other.server;
}

using MayBe = bool (*)(const WatchedDesktop&, const Session&);

// Assigns sessions that no display shows yet to displays that show none.
void assign(const std::vector<WatchedDesktop>& desktops, const std::vector<Session>& sessions,
            MayBe may_be, std::vector<size_t>* shown) {
  for (size_t d = 0; d < desktops.size(); ++d) {
    for (size_t s = 0; (*shown)[d] == kNoSession && s < sessions.size(); ++s) {
      if (std::find(shown->begin(), shown->end(), s) != shown->end()) continue;
      if (!may_be(desktops[d], sessions[s])) continue;
      for (size_t other = 0; other < desktops.size(); ++other)
        if (other == d || same_server(desktops[d], desktops[other])) (*shown)[other] = s;
    }
  }
}

}  // namespace

std::vector<size_t> shown_sessions(const std::vector<WatchedDesktop>& desktops,
                                   const std::vector<Session>& sessions) {
  std::vector<size_t> shown(desktops.size(), kNoSession);
  // What is more certain first.
  for (const MayBe may_be : {server_is_of, agent_is_of, has_display_of, may_show})
    assign(desktops, sessions, may_be, &shown);
  return shown;
}

std::string session_in_cgroups(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // "0::/user.slice/user-1000.slice/session-2.scope/..."; cgroup v1: "1:name=systemd:/..."
    const size_t path = line.find(":/");
    if (path == std::string_view::npos) continue;
    const std::string_view hierarchy = line.substr(0, path);
    if (hierarchy != "0:" && !hierarchy.ends_with(":name=systemd")) continue;
    line.remove_prefix(path + 2);
    // Below a unit anybody may make groups of any name.
    std::string_view unit;
    do {
      const size_t slash = std::min(line.find('/'), line.size());
      unit = line.substr(0, slash);
      line.remove_prefix(std::min(slash + 1, line.size()));
    } while (unit.ends_with(".slice"));
    constexpr std::string_view kPrefix = "session-", kSuffix = ".scope";
    if (!unit.starts_with(kPrefix) || !unit.ends_with(kSuffix)) continue;
    unit.remove_prefix(kPrefix.size());
    unit.remove_suffix(kSuffix.size());
    return std::string(unit);
  }
  return "";
}

std::string session_of_process(const std::string& root, pid_t pid) {
  return pid > 0 ? session_in_cgroups(read_proc(root + "/proc/" + std::to_string(pid) + "/cgroup"))
                 : "";
}

}  // namespace sublet::loadmon
