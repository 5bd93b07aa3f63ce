// libsystemd, of which only the part for D-Bus is used. Loaded when the system has a bus, and not
// linked: with the libraries that it needs it is a third of the monitor's memory. Its functions
// have their usual names here, without "sd_"; none may be called before load() has succeeded.
#ifndef SUBLET_LOADMON_SENSES_SYSTEMD_BUS_H_
#define SUBLET_LOADMON_SENSES_SYSTEMD_BUS_H_

#include <systemd/sd-bus.h>

#include <string>

namespace sublet::loadmon::systemd {

// Whether there is something to connect to: $DBUS_SYSTEM_BUS_ADDRESS, or the usual socket.
bool has_bus();

// Reads a disk. Returns why it failed; "": it did not. A second call has no effect.
std::string load();

#define SUBLET_SYSTEMD_FUNCTIONS(F) \
  F(bus_add_match_async)            \
  F(bus_call_async)                 \
  F(bus_flush_close_unref)          \
  F(bus_get_events)                 \
  F(bus_get_fd)                     \
  F(bus_match_signal_async)         \
  F(bus_message_appendv)            \
  F(bus_message_enter_container)    \
  F(bus_message_exit_container)     \
  F(bus_message_get_error)          \
  F(bus_message_get_path)           \
  F(bus_message_is_method_error)    \
  F(bus_message_new_method_call)    \
  F(bus_message_read)               \
  F(bus_message_set_auto_start)     \
  F(bus_message_skip)               \
  F(bus_message_unref)              \
  F(bus_open_system)                \
  F(bus_process)
#define SUBLET_DECLARE(name) extern decltype(&::sd_##name) name;
SUBLET_SYSTEMD_FUNCTIONS(SUBLET_DECLARE)
#undef SUBLET_DECLARE

}  // namespace sublet::loadmon::systemd

#endif  // SUBLET_LOADMON_SENSES_SYSTEMD_BUS_H_
