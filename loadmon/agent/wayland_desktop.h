// Wayland: ext-idle-notify-v1, or KDE's older protocol, for each seat. Both tell when a seat has
// been idle for a time and when it no longer is; a film that inhibits idleness counts as use.
// Whether a full-screen program is in front is known where the compositor tells of windows.
#ifndef SUBLET_LOADMON_AGENT_WAYLAND_DESKTOP_H_
#define SUBLET_LOADMON_AGENT_WAYLAND_DESKTOP_H_

#include <wayland-client.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "loadmon/agent/desktop.h"
#include "loadmon/agent/wayland_windows.h"

struct ext_idle_notifier_v1;
struct ext_idle_notification_v1;
struct org_kde_kwin_idle;
struct org_kde_kwin_idle_timeout;

namespace sublet::agent {

class WaylandDesktop : public Desktop {
 public:
  // Connects to $WAYLAND_DISPLAY. nullptr: the compositor has neither protocol. Throws
  // std::runtime_error if there is no compositor.
  static std::unique_ptr<WaylandDesktop> open(Hooks hooks);
  ~WaylandDesktop() override;

  sublet_desktop kind() const override;
  pid_t server() const override;
  int handle() const override { return wl_display_get_fd(compositor_); }
  void dispatch() override;
  void probe() override;

  // The compositor's events; for its callbacks only.
  void add_global(uint32_t name, const char* interface, uint32_t version);
  void remove_global(uint32_t name);
  void answered();

 private:
  // What the compositor tells of one seat.
  struct Seat {
    WaylandDesktop* desktop = nullptr;
    uint32_t name = 0;
    wl_seat* seat = nullptr;
    ext_idle_notification_v1* ext = nullptr;
    org_kde_kwin_idle_timeout* kde = nullptr;
    bool active = false;
  };

  explicit WaylandDesktop(Hooks hooks);
  void watch(Seat& seat);
  static void release(Seat& seat);
  static void set_active(Seat& seat, bool active);

  const Hooks hooks_;
  wl_display* compositor_;
  wl_registry* registry_ = nullptr;
  ext_idle_notifier_v1* ext_ = nullptr;
  org_kde_kwin_idle* kde_ = nullptr;
  bool watching_ = false;            // what comes later is watched at once
  wl_callback* question_ = nullptr;  // the probe's
  std::vector<std::unique_ptr<Seat>> seats_;
  WaylandWindows windows_;
};

}  // namespace sublet::agent

#endif  // SUBLET_LOADMON_AGENT_WAYLAND_DESKTOP_H_
