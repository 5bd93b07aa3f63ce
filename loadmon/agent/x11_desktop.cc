#include "loadmon/agent/x11_desktop.h"

#include <xcb/xcbext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/local_socket.h"

namespace sublet::agent {
namespace {

constexpr std::string_view kIdleTime = "IDLETIME";
constexpr uint32_t kMostStates = 32;  // of a window

// What libxcb allocates with malloc.
struct Free {
  void operator()(void* memory) const { free(memory); }
};
template <typename T>
using Allocated = std::unique_ptr<T, Free>;

std::string display() {
  const char* name = getenv("DISPLAY");
  return name != nullptr ? name : "";
}

// xcb_sync_systemcounter_name() skips two bytes too many: it takes the padding at the end of the
// C struct for a part of the message.
std::string_view name_of(const xcb_sync_systemcounter_t& counter) {
  return {reinterpret_cast<const char*>(&counter.name_len + 1), counter.name_len};
}

int64_t whole(const xcb_sync_int64_t& value) {
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(value.hi)) << 32 |
                              value.lo);
}

}  // namespace

X11Desktop::X11Desktop(Hooks hooks) : hooks_(std::move(hooks)), server_(nullptr, xcb_disconnect) {
  int screen = 0;
  server_.reset(xcb_connect(nullptr, &screen));
  if (xcb_connection_has_error(server_.get()) != 0)
    throw std::runtime_error("cannot connect to the X server " + display() +
                             ": check $DISPLAY and $XAUTHORITY");
  find_counter();
  active_ = new_alarm(XCB_SYNC_TESTTYPE_NEGATIVE_TRANSITION);
  quiet_ = new_alarm(XCB_SYNC_TESTTYPE_POSITIVE_TRANSITION);
  read_first_value();
  watch_windows(screen);
}

pid_t X11Desktop::server() const { return peer_credentials(handle()).pid; }

int64_t X11Desktop::local_display() const {
  char* host = nullptr;
  int number = 0;
  if (xcb_parse_display(nullptr, &host, &number, nullptr) == 0) return 0;
  const Allocated<char> name(host);
  return *host == 0 ? number + 1 : 0;
}

void X11Desktop::find_counter() {
  xcb_connection_t* server = server_.get();
  const auto* extension = xcb_get_extension_data(server, &xcb_sync_id);
  if (extension == nullptr || extension->present == 0)
    throw std::runtime_error("the X server " + display() +
                             " lacks the SYNC extension: input in this session cannot be seen");
  first_event_ = extension->first_event;
  const Allocated<xcb_sync_initialize_reply_t> version(xcb_sync_initialize_reply(
      server, xcb_sync_initialize(server, XCB_SYNC_MAJOR_VERSION, XCB_SYNC_MINOR_VERSION),
      nullptr));
  const Allocated<xcb_sync_list_system_counters_reply_t> counters(
      xcb_sync_list_system_counters_reply(server, xcb_sync_list_system_counters(server), nullptr));
  if (version && counters) {
    auto each = xcb_sync_list_system_counters_counters_iterator(counters.get());
    for (; each.rem > 0; xcb_sync_systemcounter_next(&each)) {
      if (name_of(*each.data) == kIdleTime) idle_time_ = each.data->counter;
    }
  }
  if (idle_time_ == XCB_NONE)
    throw std::runtime_error("the X server " + display() +
                             " has no counter IDLETIME: input in this session cannot be seen");
}

xcb_sync_alarm_t X11Desktop::new_alarm(xcb_sync_testtype_t test) {
  xcb_connection_t* server = server_.get();
  const xcb_sync_alarm_t alarm = xcb_generate_id(server);
  xcb_sync_create_alarm_value_list_t values = {};
  values.counter = idle_time_;
  values.valueType = XCB_SYNC_VALUETYPE_ABSOLUTE;
  values.value = {.hi = 0, .lo = kQuietMs};
  values.testType = test;
  values.delta = {.hi = 0, .lo = 0};  // a transition can happen again
  values.events = 1;
  const uint32_t mask = XCB_SYNC_CA_COUNTER | XCB_SYNC_CA_VALUE_TYPE | XCB_SYNC_CA_VALUE |
                        XCB_SYNC_CA_TEST_TYPE | XCB_SYNC_CA_DELTA | XCB_SYNC_CA_EVENTS;
  const Allocated<xcb_generic_error_t> error(
      xcb_request_check(server, xcb_sync_create_alarm_aux_checked(server, alarm, mask, &values)));
  if (error || xcb_connection_has_error(server) != 0)
    throw std::runtime_error("the X server " + display() +
                             " refuses an alarm: input in this session cannot be seen");
  return alarm;
}

// The alarms tell of changes only.
void X11Desktop::read_first_value() {
  xcb_connection_t* server = server_.get();
  const Allocated<xcb_sync_query_counter_reply_t> value(
      xcb_sync_query_counter_reply(server, xcb_sync_query_counter(server, idle_time_), nullptr));
  if (!value) throw DesktopGone("the X server " + display() + " has gone");
  whole(value->counter_value) >= kQuietMs ? hooks_.quiet() : hooks_.active();
}

void X11Desktop::dispatch() {
  xcb_connection_t* server = server_.get();
  Allocated<xcb_generic_event_t> event{xcb_poll_for_event(server)};
  do {
    for (; event; event.reset(xcb_poll_for_event(server))) handle_event(*event);
    if (question_ != 0) poll_answer();
    poll_windows();
    // Who looks for an answer, or asks, may read events, too.
    event.reset(xcb_poll_for_queued_event(server));
  } while (event);
  if (xcb_connection_has_error(server) != 0)
    throw DesktopGone("the X server " + display() + " has gone");
}

void X11Desktop::handle_event(const xcb_generic_event_t& event) {
  const int type = event.response_type & 0x7f;
  if (type == first_event_ + XCB_SYNC_ALARM_NOTIFY) {
    handle_alarm(reinterpret_cast<const xcb_sync_alarm_notify_event_t&>(event));
  } else if (type == XCB_PROPERTY_NOTIFY) {
    const auto& changed = reinterpret_cast<const xcb_property_notify_event_t&>(event);
    if (changed.atom == (changed.window == root_ ? active_window_ : state_)) look_at_windows();
  } else if (type == XCB_VISIBILITY_NOTIFY) {
    const auto& seen = reinterpret_cast<const xcb_visibility_notify_event_t&>(event);
    if (seen.window == window_) hidden_ = seen.state == XCB_VISIBILITY_FULLY_OBSCURED;
    tell_full_screen();
  } else if (type == XCB_UNMAP_NOTIFY || type == XCB_DESTROY_NOTIFY) {
    look_at_windows();
  }
}

void X11Desktop::watch_windows(int screen) {
  auto screens = xcb_setup_roots_iterator(xcb_get_setup(server_.get()));
  for (; screen > 0 && screens.rem > 1; --screen) xcb_screen_next(&screens);
  root_ = screens.data->root;
  active_window_ = atom("_NET_ACTIVE_WINDOW");
  state_ = atom("_NET_WM_STATE");
  full_screen_ = atom("_NET_WM_STATE_FULLSCREEN");
  const uint32_t events = XCB_EVENT_MASK_PROPERTY_CHANGE;
  xcb_change_window_attributes(server_.get(), root_, XCB_CW_EVENT_MASK, &events);
  look_at_windows();
}

xcb_atom_t X11Desktop::atom(const char* name) {
  xcb_connection_t* server = server_.get();
  const Allocated<xcb_intern_atom_reply_t> reply(xcb_intern_atom_reply(
      server, xcb_intern_atom(server, 0, static_cast<uint16_t>(strlen(name)), name), nullptr));
  if (!reply) throw DesktopGone("the X server " + display() + " has gone");
  return reply->atom;
}

void X11Desktop::look_at_windows() {
  again_ = asked_ != Asked::nothing;
  if (!again_) ask_for(root_, active_window_, XCB_ATOM_WINDOW, Asked::window);
}

void X11Desktop::ask_for(xcb_window_t window, xcb_atom_t property, xcb_atom_t type, Asked asked) {
  asked_ = asked;
  window_question_ =
      xcb_get_property(server_.get(), 0, window, property, type, 0, kMostStates).sequence;
  xcb_flush(server_.get());
}

void X11Desktop::poll_windows() {
  void* reply = nullptr;
  xcb_generic_error_t* error = nullptr;
  while (asked_ != Asked::nothing &&
         xcb_poll_for_reply(server_.get(), window_question_, &reply, &error) != 0) {
    // A window that has gone has no property.
    const Allocated<xcb_get_property_reply_t> answer(static_cast<xcb_get_property_reply_t*>(reply));
    const Allocated<xcb_generic_error_t> refusal(error);
    const bool known = answer && answer->format == 32;
    const auto* values =
        known ? static_cast<const uint32_t*>(xcb_get_property_value(answer.get())) : nullptr;
    const uint32_t* end = known ? values + answer->value_len : nullptr;
    if (std::exchange(asked_, Asked::nothing) == Asked::window) {
      take_window(values != end ? *values : XCB_NONE);
      continue;
    }
    fills_ = std::find(values, end, full_screen_) != end;
    tell_full_screen();
    if (std::exchange(again_, false)) look_at_windows();
  }
}

void X11Desktop::take_window(xcb_window_t window) {
  xcb_connection_t* server = server_.get();
  if (window != window_) {
    const uint32_t none = 0, events = XCB_EVENT_MASK_PROPERTY_CHANGE |
                                      XCB_EVENT_MASK_VISIBILITY_CHANGE |
                                      XCB_EVENT_MASK_STRUCTURE_NOTIFY;
    if (window_ != XCB_NONE)
      xcb_change_window_attributes(server, window_, XCB_CW_EVENT_MASK, &none);
    if (window != XCB_NONE)
      xcb_change_window_attributes(server, window, XCB_CW_EVENT_MASK, &events);
    window_ = window;
    hidden_ = false;
  }
  ask_for(window, state_, XCB_ATOM_ATOM, Asked::state);
}

void X11Desktop::tell_full_screen() {
  const bool now = fills_ && !hidden_;
  if (std::exchange(told_, now) != now) hooks_.full_screen(now);
}

void X11Desktop::handle_alarm(const xcb_sync_alarm_notify_event_t& event) {
  if (event.state == XCB_SYNC_ALARMSTATE_DESTROYED)
    throw DesktopGone("the X server " + display() + " no longer counts the idle time");
  if (event.alarm == active_) hooks_.active();
  if (event.alarm == quiet_) hooks_.quiet();
}

void X11Desktop::poll_answer() {
  void* reply = nullptr;
  xcb_generic_error_t* error = nullptr;
  if (xcb_poll_for_reply(server_.get(), question_, &reply, &error) == 0) return;
  const Allocated<void> answer(reply);
  const Allocated<xcb_generic_error_t> refusal(error);
  question_ = 0;
  if (answer) hooks_.answered();
}

void X11Desktop::probe() {
  if (question_ != 0) return;
  question_ = xcb_sync_query_counter(server_.get(), idle_time_).sequence;
  if (xcb_flush(server_.get()) <= 0) throw DesktopGone("the X server " + display() + " has gone");
}

}  // namespace sublet::agent
