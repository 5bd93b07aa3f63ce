// Plays the owner of an X server, and a program that only draws: key, button, motion, draw.
#include <xcb/xcb.h>
#include <xcb/xtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "test/desktops/stdin_words.h"

namespace {

constexpr uint8_t kSomeKey = 38;

void fake(xcb_connection_t* server, uint8_t type, uint8_t detail, int16_t x, int16_t y) {
  xcb_test_fake_input(server, type, detail, XCB_CURRENT_TIME, XCB_NONE, x, y, 0);
}

void draw(xcb_connection_t* server, const xcb_screen_t* screen) {
  const xcb_window_t window = xcb_generate_id(server);
  xcb_create_window(server, XCB_COPY_FROM_PARENT, window, screen->root, 0, 0, 100, 100, 0,
                    XCB_WINDOW_CLASS_INPUT_OUTPUT, screen->root_visual, 0, nullptr);
  xcb_map_window(server, window);
  const xcb_gcontext_t ink = xcb_generate_id(server);
  xcb_create_gc(server, ink, window, 0, nullptr);
  const xcb_rectangle_t all = {0, 0, 100, 100};
  xcb_poly_fill_rectangle(server, window, ink, 1, &all);
  xcb_destroy_window(server, window);
}

bool play(xcb_connection_t* server, const xcb_screen_t* screen, const std::string& word) {
  if (word == "key") {
    fake(server, XCB_KEY_PRESS, kSomeKey, 0, 0);
    fake(server, XCB_KEY_RELEASE, kSomeKey, 0, 0);
  } else if (word == "button") {
    fake(server, XCB_BUTTON_PRESS, 1, 0, 0);
    fake(server, XCB_BUTTON_RELEASE, 1, 0, 0);
  } else if (word == "motion") {
    static int16_t step = 1;
    fake(server, XCB_MOTION_NOTIFY, 1, step, step);
    step = static_cast<int16_t>(-step);
  } else if (word == "draw") {
    draw(server, screen);
  } else {
    return false;
  }
  free(xcb_get_input_focus_reply(server, xcb_get_input_focus(server), nullptr));
  return xcb_connection_has_error(server) == 0;
}

}  // namespace

int main() {
  xcb_connection_t* server = xcb_connect(nullptr, nullptr);
  if (xcb_connection_has_error(server) != 0) {
    std::cerr << "xtest_input: cannot connect to $DISPLAY\n";
    return 1;
  }
  const xcb_screen_t* screen = xcb_setup_roots_iterator(xcb_get_setup(server)).data;
  while (sublet::test::play_word(
      [&](const std::string& word) { return play(server, screen, word); })) {
  }
  xcb_disconnect(server);
  return 0;
}
