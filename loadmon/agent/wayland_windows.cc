#include "loadmon/agent/wayland_windows.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace sublet::agent {
namespace {

// The protocol, which is in no package of Debian's, as far as it is needed: version 2, the first
// that tells of full-screen windows. Requests and events in the order of their numbers.
constexpr uint32_t kVersion = 2;
constexpr uint32_t kActivated = 2, kFullScreen = 3;  // in the list of an event `state`
constexpr uint32_t kDestroyWindow = 7;

const wl_interface* kNone[] = {nullptr, nullptr, nullptr, nullptr, nullptr};
const wl_message kWindowRequests[] = {
    {"set_maximized", "", kNone},      {"unset_maximized", "", kNone}, {"set_minimized", "", kNone},
    {"unset_minimized", "", kNone},    {"activate", "o", kNone},       {"close", "", kNone},
    {"set_rectangle", "oiiii", kNone}, {"destroy", "", kNone}};
const wl_message kWindowEvents[] = {{"title", "s", kNone},        {"app_id", "s", kNone},
                                    {"output_enter", "o", kNone}, {"output_leave", "o", kNone},
                                    {"state", "a", kNone},        {"done", "", kNone},
                                    {"closed", "", kNone}};
const wl_interface kWindow = {"zwlr_foreign_toplevel_handle_v1", kVersion,
                              std::size(kWindowRequests),        kWindowRequests,
                              std::size(kWindowEvents),          kWindowEvents};
const wl_interface* kNewWindow[] = {&kWindow};
const wl_message kManagerRequests[] = {{"stop", "", kNone}};
const wl_message kManagerEvents[] = {{"toplevel", "n", kNewWindow}, {"finished", "", kNone}};
const wl_interface kManager = {"zwlr_foreign_toplevel_manager_v1", kVersion,
                               std::size(kManagerRequests),        kManagerRequests,
                               std::size(kManagerEvents),          kManagerEvents};

bool has(const wl_array& states, uint32_t state) {
  const auto* first = static_cast<const uint32_t*>(states.data);
  const auto* end = first + states.size / sizeof *first;
  return std::find(first, end, state) != end;
}

using Listener = void (**)();

}  // namespace

struct WaylandWindows::Events {
  // As libwayland calls them: in the order of the events, each with its arguments.
  struct Window {
    void (*title)(void*, wl_proxy*, const char*) = [](void*, wl_proxy*, const char*) {};
    void (*app_id)(void*, wl_proxy*, const char*) = [](void*, wl_proxy*, const char*) {};
    void (*output_enter)(void*, wl_proxy*, wl_proxy*) = [](void*, wl_proxy*, wl_proxy*) {};
    void (*output_leave)(void*, wl_proxy*, wl_proxy*) = [](void*, wl_proxy*, wl_proxy*) {};
    void (*state)(void*, wl_proxy*, wl_array*) = [](void* self, wl_proxy* window, wl_array* list) {
      static_cast<WaylandWindows*>(self)->set(window,
                                              has(*list, kActivated) && has(*list, kFullScreen));
    };
    void (*done)(void*, wl_proxy*) = [](void* self, wl_proxy*) {
      static_cast<WaylandWindows*>(self)->tell();
    };
    void (*closed)(void*, wl_proxy*) = [](void* self, wl_proxy* window) {
      static_cast<WaylandWindows*>(self)->close(window);
    };
  };
  struct Manager {
    void (*toplevel)(void*, wl_proxy*, wl_proxy*) = [](void* self, wl_proxy*, wl_proxy* window) {
      static Window events;
      static_cast<WaylandWindows*>(self)->windows_.insert(window);
      wl_proxy_add_listener(window, reinterpret_cast<Listener>(&events), self);
    };
    void (*finished)(void*, wl_proxy*) = [](void* self, wl_proxy*) {
      static_cast<WaylandWindows*>(self)->finish();
    };
  };
};

void WaylandWindows::add_global(wl_registry* registry, uint32_t name, const char* interface,
                                uint32_t version) {
  if (std::string_view(interface) != kManager.name || version < kVersion || manager_ != nullptr)
    return;
  static Events::Manager events;
  manager_ = static_cast<wl_proxy*>(wl_registry_bind(registry, name, &kManager, kVersion));
  wl_proxy_add_listener(manager_, reinterpret_cast<Listener>(&events), this);
}

void WaylandWindows::set(wl_proxy* window, bool fills) {
  if (fills)
    filling_.insert(window);
  else
    filling_.erase(window);
}

void WaylandWindows::tell() {
  const bool now = !filling_.empty();
  if (std::exchange(told_, now) != now) full_screen_(now);
}

void WaylandWindows::close(wl_proxy* window) {
  windows_.erase(window);
  filling_.erase(window);
  wl_proxy_marshal(window, kDestroyWindow);
  wl_proxy_destroy(window);
  tell();
}

// The compositor tells of windows no more.
void WaylandWindows::finish() {
  wl_proxy_destroy(std::exchange(manager_, nullptr));
  filling_.clear();
  tell();
}

void WaylandWindows::release() {
  for (wl_proxy* window : windows_) wl_proxy_destroy(window);
  windows_.clear();
  if (manager_ != nullptr) wl_proxy_destroy(manager_);
  manager_ = nullptr;
}

}  // namespace sublet::agent
