// Plays the owner of an X server (key, button, motion), a program that only draws (draw), and a
// window manager with a film: fill, shrink, close; lock and unlock cover it with another window.
#include <xcb/xcb.h>
#include <xcb/xtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <utility>

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

xcb_window_t new_window(xcb_connection_t* server, const xcb_screen_t* screen, bool unmanaged) {
  const xcb_window_t window = xcb_generate_id(server);
  const uint32_t value = unmanaged;
  xcb_create_window(server, XCB_COPY_FROM_PARENT, window, screen->root, 0, 0,
                    screen->width_in_pixels, screen->height_in_pixels, 0,
                    XCB_WINDOW_CLASS_INPUT_OUTPUT, screen->root_visual, XCB_CW_OVERRIDE_REDIRECT,
                    &value);
  xcb_map_window(server, window);
  return window;
}

xcb_atom_t atom(xcb_connection_t* server, const char* name) {
  xcb_intern_atom_reply_t* reply = xcb_intern_atom_reply(
      server, xcb_intern_atom(server, 0, static_cast<uint16_t>(strlen(name)), name), nullptr);
  const xcb_atom_t found = reply != nullptr ? reply->atom : XCB_NONE;
  free(reply);
  return found;
}

void set(xcb_connection_t* server, xcb_window_t window, const char* name, xcb_atom_t type,
         uint32_t value) {
  xcb_change_property(server, XCB_PROP_MODE_REPLACE, window, atom(server, name), type, 32,
                      value == XCB_NONE ? 0 : 1, &value);
}

bool play_film(xcb_connection_t* server, const xcb_screen_t* screen, const std::string& word) {
  static xcb_window_t film = XCB_NONE, lock = XCB_NONE;
  if (word == "fill") {
    if (film == XCB_NONE) film = new_window(server, screen, false);
    set(server, film, "_NET_WM_STATE", XCB_ATOM_ATOM, atom(server, "_NET_WM_STATE_FULLSCREEN"));
    set(server, screen->root, "_NET_ACTIVE_WINDOW", XCB_ATOM_WINDOW, film);
  } else if (word == "shrink") {
    set(server, film, "_NET_WM_STATE", XCB_ATOM_ATOM, XCB_NONE);
  } else if (word == "close") {
    xcb_destroy_window(server, std::exchange(film, XCB_NONE));
  } else if (word == "lock") {
    lock = new_window(server, screen, true);
  } else if (word == "unlock") {
    xcb_destroy_window(server, lock);
  } else {
    return false;
  }
  return true;
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
  } else if (!play_film(server, screen, word)) {
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
