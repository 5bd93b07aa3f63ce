// X11: two alarms of the SYNC extension on the counter IDLETIME, the milliseconds since the
// last input of any device.
#ifndef SUBLET_LOADMON_AGENT_X11_DESKTOP_H_
#define SUBLET_LOADMON_AGENT_X11_DESKTOP_H_

#include <xcb/sync.h>
#include <xcb/xcb.h>

#include <memory>

#include "loadmon/agent/desktop.h"

namespace sublet::agent {

class X11Desktop : public Desktop {
 public:
  // Connects to $DISPLAY. Throws std::runtime_error.
  explicit X11Desktop(Hooks hooks);

  sublet_desktop kind() const override { return SUBLET_DESKTOP_X11; }
  pid_t server() const override;
  int64_t local_display() const override;
  int handle() const override { return xcb_get_file_descriptor(server_.get()); }
  void dispatch() override;
  void probe() override;

 private:
  void find_counter();
  xcb_sync_alarm_t new_alarm(xcb_sync_testtype_t test);
  void read_first_value();
  void handle_alarm(const xcb_sync_alarm_notify_event_t& event);
  void poll_answer();

  const Hooks hooks_;
  std::unique_ptr<xcb_connection_t, decltype(&xcb_disconnect)> server_;
  uint8_t first_event_ = 0;
  xcb_sync_counter_t idle_time_ = XCB_NONE;
  xcb_sync_alarm_t active_ = XCB_NONE;
  xcb_sync_alarm_t quiet_ = XCB_NONE;
  unsigned int question_ = 0;  // the probe's; 0: none
};

}  // namespace sublet::agent

#endif  // SUBLET_LOADMON_AGENT_X11_DESKTOP_H_
