// Mutter's IdleMonitor on the session bus, as far as an idle watcher sees it: watches fire as
// those of Mutter do. Reads what happens: key.
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include <iostream>
#include <map>
#include <string>

#include "base/clock.h"
#include "test/desktops/stdin_words.h"

namespace {

constexpr char kName[] = "org.gnome.Mutter.IdleMonitor";
constexpr char kPath[] = "/org/gnome/Mutter/IdleMonitor/Core";
constexpr uint64_t kUsPerMs = 1000;

sd_bus* bus;
sd_event* loop;
std::map<uint32_t, uint64_t> watches;  // interval in ms; 0: the next input
std::map<uint32_t, sd_event_source*> timers;
uint64_t last_input_us;
uint32_t last_id;

uint64_t now_us() {
  uint64_t now = 0;
  sd_event_now(loop, CLOCK_MONOTONIC, &now);
  return now;
}

void fire(uint32_t id) {
  sd_bus_emit_signal(bus, kPath, kName, "WatchFired", "u", id);
  sd_bus_flush(bus);
}

int on_timer(sd_event_source*, uint64_t, void* id) {
  fire(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(id)));
  return 0;
}

void start_timer(uint32_t id) {
  sd_event_source_unref(timers[id]);
  timers[id] = nullptr;
  sd_event_add_time(loop, &timers[id], CLOCK_MONOTONIC, last_input_us + watches[id] * kUsPerMs, 1,
                    on_timer, reinterpret_cast<void*>(uintptr_t{id}));
}

int get_idle_time(sd_bus_message* message, void*, sd_bus_error*) {
  return sd_bus_reply_method_return(message, "t", (now_us() - last_input_us) / kUsPerMs);
}

int add_idle_watch(sd_bus_message* message, void*, sd_bus_error*) {
  uint64_t interval = 0;
  sd_bus_message_read(message, "t", &interval);
  watches[++last_id] = interval;
  const int answered = sd_bus_reply_method_return(message, "u", last_id);
  start_timer(last_id);
  return answered;
}

int add_active_watch(sd_bus_message* message, void*, sd_bus_error*) {
  watches[++last_id] = 0;
  return sd_bus_reply_method_return(message, "u", last_id);
}

bool play(const std::string& word) {
  if (word != "key") return false;
  last_input_us = now_us();
  for (auto watch = watches.begin(); watch != watches.end();) {
    const auto [id, interval] = *watch;
    if (interval > 0)
      start_timer(id);
    else
      fire(id);
    watch = interval > 0 ? std::next(watch) : watches.erase(watch);
  }
  return true;
}

int on_word(sd_event_source*, int, uint32_t, void*) {
  if (!sublet::test::play_word(play)) sd_event_exit(loop, 0);
  return 0;
}

const sd_bus_vtable kMethods[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetIdletime", "", "t", get_idle_time, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("AddIdleWatch", "t", "u", add_idle_watch, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("AddUserActiveWatch", "", "u", add_active_watch, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("WatchFired", "u", 0),
    SD_BUS_VTABLE_END};

}  // namespace

int main() {
  if (sd_event_default(&loop) < 0 || sd_bus_open_user(&bus) < 0 ||
      sd_bus_add_object_vtable(bus, nullptr, kPath, kName, kMethods, nullptr) < 0 ||
      sd_bus_request_name(bus, kName, 0) < 0 || sd_bus_attach_event(bus, loop, 0) < 0) {
    std::cerr << "mutter: cannot serve on the session bus\n";
    return 1;
  }
  last_input_us = now_us();
  sd_event_add_io(loop, nullptr, 0, EPOLLIN, on_word, nullptr);
  std::cout << "ready" << std::endl;
  const int code = sd_event_loop(loop);
  for (const auto& [id, timer] : timers) sd_event_source_unref(timer);
  sd_bus_flush_close_unref(bus);
  sd_event_unref(loop);
  return code;
}
