// Plays the owner at KWin, by its protocol for fake input: key, button, motion, touch.
#include <kde-fake-input-client-protocol.h>
#include <wayland-client.h>

#include <iostream>
#include <string>
#include <string_view>

#include "test/desktops/stdin_words.h"

namespace {

constexpr uint32_t kKeyA = 30, kLeftButton = 0x110;
constexpr uint32_t kVersion = 4;

void add_global(void* data, wl_registry* registry, uint32_t name, const char* interface, uint32_t) {
  if (std::string_view(interface) == org_kde_kwin_fake_input_interface.name)
    *static_cast<org_kde_kwin_fake_input**>(data) = static_cast<org_kde_kwin_fake_input*>(
        wl_registry_bind(registry, name, &org_kde_kwin_fake_input_interface, kVersion));
}

bool play(org_kde_kwin_fake_input* input, const std::string& word) {
  if (word == "key") {
    for (const uint32_t pressed : {1u, 0u})
      org_kde_kwin_fake_input_keyboard_key(input, kKeyA, pressed);
  } else if (word == "button") {
    for (const uint32_t pressed : {1u, 0u})
      org_kde_kwin_fake_input_button(input, kLeftButton, pressed);
  } else if (word == "motion") {
    static int step = 1;
    org_kde_kwin_fake_input_pointer_motion(input, wl_fixed_from_int(step), 0);
    step = -step;
  } else if (word == "touch") {
    org_kde_kwin_fake_input_touch_down(input, 0, wl_fixed_from_int(5), wl_fixed_from_int(5));
    org_kde_kwin_fake_input_touch_up(input, 0);
    org_kde_kwin_fake_input_touch_frame(input);
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main() {
  wl_display* display = wl_display_connect(nullptr);
  if (display == nullptr) {
    std::cerr << "fake_input: cannot connect to $WAYLAND_DISPLAY\n";
    return 1;
  }
  org_kde_kwin_fake_input* input = nullptr;
  const wl_registry_listener listener = {.global = add_global,
                                         .global_remove = [](void*, wl_registry*, uint32_t) {}};
  wl_registry* registry = wl_display_get_registry(display);
  wl_registry_add_listener(registry, &listener, &input);
  wl_display_roundtrip(display);
  if (input == nullptr) {
    std::cerr << "fake_input: the compositor lets nobody fake input\n";
    return 1;
  }
  org_kde_kwin_fake_input_authenticate(input, "fake_input", "plays the owner");
  while (sublet::test::play_word([&](const std::string& word) {
    return play(input, word) && wl_display_roundtrip(display) >= 0;
  })) {
  }
  org_kde_kwin_fake_input_destroy(input);
  wl_registry_destroy(registry);
  wl_display_disconnect(display);
  return 0;
}
