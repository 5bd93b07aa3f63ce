// GNOME's compositor Mutter, asked over D-Bus (org.gnome.Mutter.IdleMonitor), because it offers
// Wayland programs no idle protocol.
#ifndef SUBLET_LOADMON_AGENT_MUTTER_DESKTOP_H_
#define SUBLET_LOADMON_AGENT_MUTTER_DESKTOP_H_

#include <systemd/sd-bus.h>

#include <cstdint>
#include <memory>

#include "loadmon/agent/desktop.h"

namespace sublet::agent {

class MutterDesktop : public Desktop {
 public:
  // nullptr: there is no session bus, or no Mutter on it. Throws std::runtime_error if Mutter
  // refuses.
  static std::unique_ptr<MutterDesktop> open(Hooks hooks);

  sublet_desktop kind() const override { return SUBLET_DESKTOP_MUTTER; }
  pid_t server() const override;
  int handle() const override { return sd_bus_get_fd(bus_.get()); }
  void dispatch() override;
  void probe() override;

 private:
  struct CloseBus {
    void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
  };
  using Bus = std::unique_ptr<sd_bus, CloseBus>;

  MutterDesktop(Hooks hooks, Bus bus) : hooks_(std::move(hooks)), bus_(std::move(bus)) {}
  void watch();
  void call(const char* method, sd_bus_message_handler_t done);
  void fired(uint32_t watch);

  static int on_fired(sd_bus_message* message, void* self, sd_bus_error* error);
  static int on_owner_changed(sd_bus_message* message, void* self, sd_bus_error* error);
  static int on_active_watch(sd_bus_message* message, void* self, sd_bus_error* error);
  static int on_idle_time(sd_bus_message* message, void* self, sd_bus_error* error);

  const Hooks hooks_;
  Bus bus_;
  uint32_t idle_watch_ = 0;    // fires each time the desktop becomes quiet
  uint32_t active_watch_ = 0;  // fired, or fires once at the next input
  bool awaits_input_ = false;  // such a watch has been asked for and has not fired
  bool gone_ = false;
};

}  // namespace sublet::agent

#endif  // SUBLET_LOADMON_AGENT_MUTTER_DESKTOP_H_
