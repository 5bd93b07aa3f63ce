// A compositor as far as an idle watcher sees it: a seat and ext-idle-notify-v1. Reads what
// happens at the seat: key; inhibit, uninhibit (a film begins and ends); add, remove (a second
// seat). With `bare` it has no idle protocol.
// Usage: idle_compositor NAME [bare].
#include <ext-idle-notify-v1-server-protocol.h>
#include <wayland-server.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "test/desktops/stdin_words.h"

namespace {

struct Notification {
  wl_resource* resource;
  wl_event_source* timer;
  int timeout_ms;
  bool idle;
};

wl_display* display;
std::vector<Notification*> notifications;
wl_global* second_seat;
bool inhibited;

void start_timer(const Notification& one) {
  wl_event_source_timer_update(one.timer, inhibited ? 0 : std::max(1, one.timeout_ms));
}

int on_timeout(void* data) {
  auto* one = static_cast<Notification*>(data);
  one->idle = true;
  ext_idle_notification_v1_send_idled(one->resource);
  return 0;
}

void activity() {
  for (Notification* one : notifications) {
    if (one->idle) ext_idle_notification_v1_send_resumed(one->resource);
    one->idle = false;
    start_timer(*one);
  }
}

void destroy_request(wl_client*, wl_resource* resource) { wl_resource_destroy(resource); }

void forget(wl_resource* resource) {
  auto* one = static_cast<Notification*>(wl_resource_get_user_data(resource));
  wl_event_source_remove(one->timer);
  std::erase(notifications, one);
  delete one;
}

void get_notification(wl_client* client, wl_resource*, uint32_t id, uint32_t timeout,
                      wl_resource*) {
  static const struct ext_idle_notification_v1_interface requests = {.destroy = destroy_request};
  auto* one = new Notification{
      .resource = wl_resource_create(client, &ext_idle_notification_v1_interface, 1, id),
      .timer = nullptr,
      .timeout_ms = static_cast<int>(timeout),
      .idle = false};
  one->timer = wl_event_loop_add_timer(wl_display_get_event_loop(display), on_timeout, one);
  wl_resource_set_implementation(one->resource, &requests, one, forget);
  notifications.push_back(one);
  start_timer(*one);
}

void bind_notifier(wl_client* client, void*, uint32_t version, uint32_t id) {
  static const struct ext_idle_notifier_v1_interface requests = {
      .destroy = destroy_request, .get_idle_notification = get_notification};
  wl_resource* resource =
      wl_resource_create(client, &ext_idle_notifier_v1_interface, static_cast<int>(version), id);
  wl_resource_set_implementation(resource, &requests, nullptr, nullptr);
}

void bind_seat(wl_client* client, void*, uint32_t version, uint32_t id) {
  wl_resource* resource =
      wl_resource_create(client, &wl_seat_interface, static_cast<int>(version), id);
  wl_resource_set_implementation(resource, nullptr, nullptr, nullptr);
}

wl_global* new_seat() {
  return wl_global_create(display, &wl_seat_interface, 1, nullptr, bind_seat);
}

bool play(const std::string& word) {
  if (word == "key") {
    activity();
  } else if (word == "inhibit" || word == "uninhibit") {
    inhibited = word == "inhibit";
    activity();
  } else if (word == "add") {
    second_seat = new_seat();
  } else if (word == "remove") {
    wl_global_destroy(second_seat);
  } else {
    return false;
  }
  wl_display_flush_clients(display);
  return true;
}

int on_word(int, uint32_t, void*) {
  if (!sublet::test::play_word(play)) wl_display_terminate(display);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  display = wl_display_create();
  if (argc < 2 || wl_display_add_socket(display, argv[1]) != 0) {
    std::cerr << "idle_compositor: cannot listen in $XDG_RUNTIME_DIR\n";
    return 1;
  }
  if (argc == 2)
    wl_global_create(display, &ext_idle_notifier_v1_interface, 1, nullptr, bind_notifier);
  new_seat();
  wl_event_loop_add_fd(wl_display_get_event_loop(display), 0, WL_EVENT_READABLE, on_word, nullptr);
  std::cout << "ready" << std::endl;
  wl_display_run(display);
  wl_display_destroy_clients(display);
  wl_display_destroy(display);
  return 0;
}
