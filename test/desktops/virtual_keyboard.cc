// Plays the owner at a Wayland compositor that lets programs type (virtual-keyboard-v1): key.
#include <sys/mman.h>
#include <unistd.h>
#include <wayland-client.h>

#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

#include "test/desktops/stdin_words.h"

namespace {

// The protocol as far as it is needed. Requests in the order of their numbers.
extern const wl_interface kKeyboard;
const wl_interface* const kCreateTypes[] = {&wl_seat_interface, &kKeyboard};
const wl_interface* const kNoTypes[] = {nullptr, nullptr, nullptr, nullptr};
const wl_message kManagerRequests[] = {
    {"create_virtual_keyboard", "on", const_cast<const wl_interface**>(kCreateTypes)}};
const wl_message kKeyboardRequests[] = {
    {"keymap", "uhu", const_cast<const wl_interface**>(kNoTypes)},
    {"key", "uuu", const_cast<const wl_interface**>(kNoTypes)}};
const wl_interface kManager = {
    "zwp_virtual_keyboard_manager_v1", 1, 1, kManagerRequests, 0, nullptr};
const wl_interface kKeyboard = {"zwp_virtual_keyboard_v1", 1, 2, kKeyboardRequests, 0, nullptr};

constexpr uint32_t kKeymapFormatXkb = 1;
constexpr char kKeymap[] = R"(xkb_keymap {
  xkb_keycodes { minimum = 8; maximum = 9; <K1> = 9; };
  xkb_types { include "complete" };
  xkb_compatibility { include "complete" };
  xkb_symbols { key <K1> { [ a ] }; };
};
)";

struct Globals {
  wl_seat* seat = nullptr;
  wl_proxy* manager = nullptr;
};

void add_global(void* data, wl_registry* registry, uint32_t name, const char* interface, uint32_t) {
  auto* globals = static_cast<Globals*>(data);
  const std::string_view type = interface;
  if (type == kManager.name)
    globals->manager = static_cast<wl_proxy*>(wl_registry_bind(registry, name, &kManager, 1));
  if (type == wl_seat_interface.name && globals->seat == nullptr)
    globals->seat = static_cast<wl_seat*>(wl_registry_bind(registry, name, &wl_seat_interface, 1));
}

wl_proxy* new_keyboard(const Globals& globals) {
  wl_proxy* keyboard =
      wl_proxy_marshal_constructor(globals.manager, 0, &kKeyboard, globals.seat, nullptr);
  const int map = memfd_create("keymap", MFD_CLOEXEC);
  if (write(map, kKeymap, sizeof kKeymap) != static_cast<ssize_t>(sizeof kKeymap)) return nullptr;
  wl_proxy_marshal(keyboard, 0, kKeymapFormatXkb, map, static_cast<uint32_t>(sizeof kKeymap));
  close(map);
  return keyboard;
}

}  // namespace

int main() {
  wl_display* display = wl_display_connect(nullptr);
  if (display == nullptr) {
    std::cerr << "virtual_keyboard: cannot connect to $WAYLAND_DISPLAY\n";
    return 1;
  }
  Globals globals;
  const wl_registry_listener listener = {.global = add_global,
                                         .global_remove = [](void*, wl_registry*, uint32_t) {}};
  wl_registry* registry = wl_display_get_registry(display);
  wl_registry_add_listener(registry, &listener, &globals);
  wl_display_roundtrip(display);
  wl_proxy* keyboard =
      globals.manager != nullptr && globals.seat != nullptr ? new_keyboard(globals) : nullptr;
  if (keyboard == nullptr || wl_display_roundtrip(display) < 0) {
    std::cerr << "virtual_keyboard: the compositor has no virtual keyboard\n";
    return 1;
  }
  while (sublet::test::play_word([&](const std::string& word) {
    if (word != "key") return false;
    for (const uint32_t pressed : {1u, 0u}) wl_proxy_marshal(keyboard, 1, 0u, 1u, pressed);
    return wl_display_roundtrip(display) >= 0;
  })) {
  }
  wl_proxy_destroy(keyboard);
  wl_proxy_destroy(globals.manager);
  wl_seat_destroy(globals.seat);
  wl_registry_destroy(registry);
  wl_display_disconnect(display);
  return 0;
}
