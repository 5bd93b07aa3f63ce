#include <cstdlib>
#include <utility>

#include "loadmon/agent/desktop.h"
#include "loadmon/agent/mutter_desktop.h"
#include "loadmon/agent/wayland_desktop.h"
#include "loadmon/agent/x11_desktop.h"

namespace sublet::agent {
namespace {

bool is_set(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0';
}

// An X server beside a compositor sees only the input of its own programs, so it is not asked.
std::unique_ptr<Desktop> open_wayland(const Desktop::Hooks& hooks) {
  if (auto desktop = WaylandDesktop::open(hooks)) return desktop;
  if (auto desktop = MutterDesktop::open(hooks)) return desktop;
  throw std::runtime_error(
      "this compositor tells nobody whether it is used: it has neither ext-idle-notify-v1 nor "
      "KDE's idle protocol nor Mutter's IdleMonitor; input in this session cannot be seen");
}

}  // namespace

std::unique_ptr<Desktop> open_desktop(Desktop::Hooks hooks) {
  if (is_set("WAYLAND_DISPLAY")) return open_wayland(hooks);
  if (is_set("DISPLAY")) return std::make_unique<X11Desktop>(std::move(hooks));
  throw DesktopGone(
      "there is no graphical session here: neither $WAYLAND_DISPLAY nor $DISPLAY "
      "is set");
}

}  // namespace sublet::agent
