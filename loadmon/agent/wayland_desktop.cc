#include "loadmon/agent/wayland_desktop.h"

#include <ext-idle-notify-v1-client-protocol.h>
#include <kde-idle-client-protocol.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/local_socket.h"

namespace sublet::agent {
namespace {

constexpr size_t kMostSeats = 16;

std::string compositor() {
  const char* name = getenv("WAYLAND_DISPLAY");
  return std::string("the Wayland compositor ") + (name != nullptr ? name : "");
}

const wl_registry_listener kGlobals = {
    .global =
        [](void* self, wl_registry*, uint32_t name, const char* interface, uint32_t version) {
          static_cast<WaylandDesktop*>(self)->add_global(name, interface, version);
        },
    .global_remove =
        [](void* self, wl_registry*, uint32_t name) {
          static_cast<WaylandDesktop*>(self)->remove_global(name);
        }};

const wl_callback_listener kAnswer = {.done = [](void* self, wl_callback*, uint32_t) {
  static_cast<WaylandDesktop*>(self)->answered();
}};

template <typename T>
T* bind(wl_registry* registry, uint32_t name, const wl_interface& interface) {
  return static_cast<T*>(wl_registry_bind(registry, name, &interface, 1));
}

}  // namespace

WaylandDesktop::WaylandDesktop(Hooks hooks)
    : hooks_(std::move(hooks)),
      compositor_(wl_display_connect(nullptr)),
      windows_(hooks_.full_screen) {}

std::unique_ptr<WaylandDesktop> WaylandDesktop::open(Hooks hooks) {
  std::unique_ptr<WaylandDesktop> desktop(new WaylandDesktop(std::move(hooks)));
  if (desktop->compositor_ == nullptr)
    throw std::runtime_error("cannot connect to " + compositor() +
                             ": check $WAYLAND_DISPLAY and $XDG_RUNTIME_DIR");
  desktop->registry_ = wl_display_get_registry(desktop->compositor_);
  wl_registry_add_listener(desktop->registry_, &kGlobals, desktop.get());
  // When all globals are known, what they offer is watched.
  if (wl_display_roundtrip(desktop->compositor_) < 0) throw DesktopGone(compositor() + " has gone");
  if (desktop->ext_ == nullptr && desktop->kde_ == nullptr) return nullptr;
  desktop->watching_ = true;
  for (const auto& seat : desktop->seats_) desktop->watch(*seat);
  return desktop;
}

WaylandDesktop::~WaylandDesktop() {
  if (compositor_ == nullptr) return;
  for (const auto& seat : seats_) release(*seat);
  windows_.release();
  if (question_ != nullptr) wl_callback_destroy(question_);
  if (ext_ != nullptr) ext_idle_notifier_v1_destroy(ext_);
  if (kde_ != nullptr) org_kde_kwin_idle_destroy(kde_);
  if (registry_ != nullptr) wl_registry_destroy(registry_);
  wl_display_disconnect(compositor_);
}

sublet_desktop WaylandDesktop::kind() const {
  return ext_ != nullptr ? SUBLET_DESKTOP_WAYLAND_EXT : SUBLET_DESKTOP_WAYLAND_KDE;
}

pid_t WaylandDesktop::server() const { return peer_credentials(handle()).pid; }

void WaylandDesktop::add_global(uint32_t name, const char* interface, uint32_t version) {
  const std::string_view type = interface;
  if (type == ext_idle_notifier_v1_interface.name && ext_ == nullptr) {
    ext_ = bind<ext_idle_notifier_v1>(registry_, name, ext_idle_notifier_v1_interface);
  } else if (type == org_kde_kwin_idle_interface.name && kde_ == nullptr) {
    kde_ = bind<org_kde_kwin_idle>(registry_, name, org_kde_kwin_idle_interface);
  } else if (type == wl_seat_interface.name && seats_.size() < kMostSeats) {
    seats_.push_back(std::make_unique<Seat>());
    Seat& seat = *seats_.back();
    seat.desktop = this;
    seat.name = name;
    seat.seat = bind<wl_seat>(registry_, name, wl_seat_interface);
    if (watching_) watch(seat);
  } else {
    windows_.add_global(registry_, name, interface, version);
  }
}

void WaylandDesktop::watch(Seat& seat) {
  static constexpr auto idle = [](void* seat, auto*) {
    set_active(*static_cast<Seat*>(seat), false);
  };
  static constexpr auto resumed = [](void* seat, auto*) {
    set_active(*static_cast<Seat*>(seat), true);
  };
  static const ext_idle_notification_v1_listener ext = {.idled = idle, .resumed = resumed};
  static const org_kde_kwin_idle_timeout_listener kde = {.idle = idle, .resumed = resumed};
  if (ext_ != nullptr) {
    seat.ext = ext_idle_notifier_v1_get_idle_notification(ext_, kQuietMs, seat.seat);
    ext_idle_notification_v1_add_listener(seat.ext, &ext, &seat);
  } else {
    seat.kde = org_kde_kwin_idle_get_idle_timeout(kde_, seat.seat, kQuietMs);
    org_kde_kwin_idle_timeout_add_listener(seat.kde, &kde, &seat);
  }
}

void WaylandDesktop::set_active(Seat& seat, bool active) {
  const WaylandDesktop& desktop = *seat.desktop;
  seat.active = active;
  if (active) return desktop.hooks_.active();
  const auto is_active = [](const auto& one) { return one->active; };
  if (std::none_of(desktop.seats_.begin(), desktop.seats_.end(), is_active)) desktop.hooks_.quiet();
}

void WaylandDesktop::remove_global(uint32_t name) {
  const auto found = std::find_if(seats_.begin(), seats_.end(),
                                  [name](const auto& seat) { return seat->name == name; });
  if (found == seats_.end()) return;
  if ((*found)->active) set_active(**found, false);
  release(**found);
  seats_.erase(found);
}

void WaylandDesktop::release(Seat& seat) {
  if (seat.ext != nullptr) ext_idle_notification_v1_destroy(seat.ext);
  if (seat.kde != nullptr) org_kde_kwin_idle_timeout_release(seat.kde);
  wl_seat_destroy(seat.seat);
}

void WaylandDesktop::dispatch() {
  while (wl_display_prepare_read(compositor_) != 0)
    if (wl_display_dispatch_pending(compositor_) < 0) throw DesktopGone(compositor() + " has gone");
  wl_display_flush(compositor_);
  pollfd events = {.fd = handle(), .events = POLLIN, .revents = 0};
  if (poll(&events, 1, 0) == 1)
    wl_display_read_events(compositor_);
  else
    wl_display_cancel_read(compositor_);
  wl_display_dispatch_pending(compositor_);
  if (wl_display_get_error(compositor_) != 0) throw DesktopGone(compositor() + " has gone");
  wl_display_flush(compositor_);
}

void WaylandDesktop::probe() {
  if (question_ != nullptr) return;
  question_ = wl_display_sync(compositor_);
  wl_callback_add_listener(question_, &kAnswer, this);
  wl_display_flush(compositor_);
}

void WaylandDesktop::answered() {
  wl_callback_destroy(question_);
  question_ = nullptr;
  hooks_.answered();
}

}  // namespace sublet::agent
