#include <cstdlib>
#include <utility>

#include "loadmon/agent/desktop.h"
#include "loadmon/agent/x11_desktop.h"

namespace sublet::agent {
namespace {

bool is_set(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::unique_ptr<Desktop> open_desktop(Desktop::Hooks hooks) {
  if (is_set("DISPLAY")) return std::make_unique<X11Desktop>(std::move(hooks));
  throw DesktopGone(
      "there is no graphical session here: neither $WAYLAND_DISPLAY nor $DISPLAY "
      "is set");
}

}  // namespace sublet::agent
