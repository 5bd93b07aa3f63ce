// sublet-agent: tells the load monitor when somebody uses a desktop. See docs/load-monitor.md.
#include <iostream>

#include "base/options/arguments.h"
#include "base/options/default_places.h"
#include "base/standard_streams.h"
#include "loadmon/agent/agent.h"

namespace sublet::agent {
namespace {

Manual manual() {
  return {1,
          {{"ENVIRONMENT",
            {{"`WAYLAND_DISPLAY`", "The compositor to watch."},
             {"`DISPLAY`", "The X server to watch, if `WAYLAND_DISPLAY` is not set."},
             {"`DBUS_SESSION_BUS_ADDRESS`",
              "Where Mutter (GNOME) is asked, if the compositor offers no idle protocol."}}},
           {"FILES",
            {{"`~/.local/state/sublet-client/agent.sock`",
              "The load monitor of this user's own client; tried first."},
             {"`/var/lib/sublet-client/agent.sock`", "The load monitor of the machine."}}},
           {"EXIT STATUS",
            {{"`0`", "There is no graphical session, or it has ended."},
             {"`1`", "The session cannot be watched; the message says why."},
             {"`2`", "The command line is wrong."}}},
           {"SEE ALSO", {{"", "`sublet-loadmon`(8), `sublet-client`(8)"}}}}};
}

int run(const std::string& state) {
  try {
    Agent(client_states(state)).run();
  } catch (const DesktopGone& gone) {
    std::cerr << "sublet-agent: " << gone.what() << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "sublet-agent: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace
}  // namespace sublet::agent

int main(int argc, char** argv) {
  using namespace sublet;
  keep_standard_streams();
  Arguments arguments("sublet-agent",
                      "Tells the load monitor of this machine when somebody uses this desktop.",
                      SUBLET_VERSION);
  std::string state;
  arguments.manual(agent::manual());
  arguments.option("--state", &state,
                   "state folder of the client (your own client's, or /var/lib/sublet-client)",
                   "FOLDER");
  if (const std::optional<int> code = arguments.parse(argc, argv)) return *code;
  return agent::run(state);
}
