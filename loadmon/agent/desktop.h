// A desktop session as the agent sees it: whether somebody uses its keyboard, pointer or touch
// screen. Told by X11, Wayland or Mutter, never polled. One thread.
#ifndef SUBLET_LOADMON_AGENT_DESKTOP_H_
#define SUBLET_LOADMON_AGENT_DESKTOP_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "protocol/frame.h"

namespace sublet::agent {

// Without input for this long the desktop is quiet. Some need longer.
inline constexpr int kQuietMs = 250;

// The desktop has gone, or there is none.
class DesktopGone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Desktop {
 public:
  struct Hooks {
    std::function<void()> active;    // input, after quiet
    std::function<void()> quiet;     // no input for kQuietMs
    std::function<void()> answered;  // the desktop has answered a probe()
    // Whether a full-screen program is in front. Until it is called, none is.
    std::function<void(bool)> full_screen;
  };

  virtual ~Desktop() = default;
  virtual sublet_desktop kind() const = 0;
  // The process of the X server or compositor; 0: not known.
  virtual pid_t server() const = 0;
  // Of X11 on this machine: its number + 1; 0: not known.
  virtual int64_t local_display() const { return 0; }
  // Readable when dispatch() has something to do.
  virtual int handle() const = 0;
  // Calls the hooks; never blocks. Throws DesktopGone.
  virtual void dispatch() = 0;
  // Asks the desktop for a sign of life. One answer may be for several questions. Throws
  // DesktopGone.
  virtual void probe() = 0;
};

// The desktop of this session: Wayland if $WAYLAND_DISPLAY is set, else X11 if $DISPLAY is.
// Throws DesktopGone if neither is set; std::runtime_error if it cannot be watched, with what to
// do.
std::unique_ptr<Desktop> open_desktop(Desktop::Hooks hooks);

}  // namespace sublet::agent

#endif  // SUBLET_LOADMON_AGENT_DESKTOP_H_
