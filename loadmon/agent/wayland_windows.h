// The windows of a Wayland compositor that tells of them (wlr-foreign-toplevel-management-v1, such
// as sway): whether the active one is full-screen. Titles are not looked at.
#ifndef SUBLET_LOADMON_AGENT_WAYLAND_WINDOWS_H_
#define SUBLET_LOADMON_AGENT_WAYLAND_WINDOWS_H_

#include <wayland-client.h>

#include <cstdint>
#include <functional>
#include <set>

namespace sublet::agent {

class WaylandWindows {
 public:
  explicit WaylandWindows(std::function<void(bool)> full_screen)
      : full_screen_(std::move(full_screen)) {}

  // Of the compositor; any global but that of its windows is ignored.
  void add_global(wl_registry* registry, uint32_t name, const char* interface, uint32_t version);
  // To be called before the connection is closed.
  void release();

 private:
  // The functions that the compositor's events call.
  struct Events;

  void set(wl_proxy* window, bool fills);
  void close(wl_proxy* window);
  void finish();
  void tell();

  const std::function<void(bool)> full_screen_;
  wl_proxy* manager_ = nullptr;
  std::set<wl_proxy*> windows_;
  std::set<wl_proxy*> filling_;  // those that are active and full-screen
  bool told_ = false;
};

}  // namespace sublet::agent

#endif  // SUBLET_LOADMON_AGENT_WAYLAND_WINDOWS_H_
