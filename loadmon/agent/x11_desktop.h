// X11: two alarms of the SYNC extension on the counter IDLETIME, the milliseconds since the
// last input of any device; and whether the active window is a full-screen one, as the window
// manager says in properties (EWMH).
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
  // Questions about the active window, one after the other.
  enum class Asked { nothing, window, state };

  void find_counter();
  void watch_windows(int screen);
  xcb_atom_t atom(const char* name);
  void handle_event(const xcb_generic_event_t& event);
  void look_at_windows();
  void ask_for(xcb_window_t window, xcb_atom_t property, xcb_atom_t type, Asked asked);
  void poll_windows();
  void take_window(xcb_window_t window);
  void tell_full_screen();
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

  xcb_window_t root_ = XCB_NONE;
  xcb_atom_t active_window_ = XCB_NONE, state_ = XCB_NONE, full_screen_ = XCB_NONE;
  xcb_window_t window_ = XCB_NONE;  // the active one
  bool fills_ = false;              // it is a full-screen window,
  bool hidden_ = false;             // wholly behind others, such as a lock's
  bool told_ = false;
  Asked asked_ = Asked::nothing;
  unsigned int window_question_ = 0;
  bool again_ = false;  // something changed since the question was sent
};

}  // namespace sublet::agent

#endif  // SUBLET_LOADMON_AGENT_X11_DESKTOP_H_
