#include "loadmon/agent/mutter_desktop.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace sublet::agent {
namespace {

constexpr char kName[] = "org.gnome.Mutter.IdleMonitor";
constexpr char kPath[] = "/org/gnome/Mutter/IdleMonitor/Core";
constexpr char kOwnerChanged[] =
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
    "member='NameOwnerChanged',arg0='org.gnome.Mutter.IdleMonitor'";
constexpr uint64_t kFirstAnswerUs = 5'000'000;
// The load monitor's pings notice a desktop that does not answer.
constexpr uint64_t kNoLimit = UINT64_MAX;

struct Unref {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, Unref>;

// Never starts the program that would own the name.
Message new_call(sd_bus* bus, const char* method) {
  sd_bus_message* message = nullptr;
  if (sd_bus_message_new_method_call(bus, &message, kName, kPath, kName, method) >= 0)
    sd_bus_message_set_auto_start(message, 0);
  return Message(message);
}

bool is_there(sd_bus* bus) {
  const Message call = new_call(bus, "GetIdletime");
  return call && sd_bus_call(bus, call.get(), kFirstAnswerUs, nullptr, nullptr) >= 0;
}

[[noreturn]] void refused(int error) {
  throw std::runtime_error(std::string("Mutter's IdleMonitor refuses a watch: ") +
                           std::strerror(-error));
}

}  // namespace

std::unique_ptr<MutterDesktop> MutterDesktop::open(Hooks hooks) {
  sd_bus* opened = nullptr;
  if (sd_bus_open_user(&opened) < 0) return nullptr;
  Bus bus(opened);
  if (!is_there(bus.get())) return nullptr;
  std::unique_ptr<MutterDesktop> desktop(new MutterDesktop(std::move(hooks), std::move(bus)));
  desktop->watch();
  return desktop;
}

pid_t MutterDesktop::server() const {
  sd_bus_creds* found = nullptr;
  pid_t pid = 0;
  if (sd_bus_get_name_creds(bus_.get(), kName, SD_BUS_CREDS_PID, &found) < 0) return 0;
  if (sd_bus_creds_get_pid(found, &pid) < 0) pid = 0;
  sd_bus_creds_unref(found);
  return pid;
}

void MutterDesktop::watch() {
  sd_bus* bus = bus_.get();
  int error = sd_bus_match_signal(bus, nullptr, kName, kPath, kName, "WatchFired", on_fired, this);
  if (error >= 0) error = sd_bus_add_match(bus, nullptr, kOwnerChanged, on_owner_changed, this);
  if (error < 0) refused(error);
  // Fires at once if the desktop is quiet already.
  const Message call = new_call(bus, "AddIdleWatch");
  sd_bus_message* reply = nullptr;
  if (!call) refused(-ENOMEM);
  error = sd_bus_message_append(call.get(), "t", uint64_t{kQuietMs});
  if (error >= 0) error = sd_bus_call(bus, call.get(), kFirstAnswerUs, nullptr, &reply);
  const Message answer(reply);
  if (error >= 0) error = sd_bus_message_read(answer.get(), "u", &idle_watch_);
  if (error < 0) refused(error);
}

void MutterDesktop::call(const char* method, sd_bus_message_handler_t done) {
  const Message call = new_call(bus_.get(), method);
  if (!call || sd_bus_call_async(bus_.get(), nullptr, call.get(), done, this, kNoLimit) < 0)
    gone_ = true;
}

void MutterDesktop::fired(uint32_t watch) {
  if (watch == idle_watch_) {
    // Quiet again, but the watch for input has not fired: it came too late to see it.
    if (awaits_input_) hooks_.active();
    hooks_.quiet();
    if (!awaits_input_) call("AddUserActiveWatch", on_active_watch);
    awaits_input_ = true;
  } else if (watch == active_watch_) {
    awaits_input_ = false;
    hooks_.active();
  }
}

int MutterDesktop::on_fired(sd_bus_message* message, void* self, sd_bus_error*) {
  uint32_t watch = 0;
  if (sd_bus_message_read(message, "u", &watch) >= 0)
    static_cast<MutterDesktop*>(self)->fired(watch);
  return 0;
}

int MutterDesktop::on_owner_changed(sd_bus_message*, void* self, sd_bus_error*) {
  static_cast<MutterDesktop*>(self)->gone_ = true;
  return 0;
}

int MutterDesktop::on_active_watch(sd_bus_message* message, void* self, sd_bus_error*) {
  auto* desktop = static_cast<MutterDesktop*>(self);
  if (sd_bus_message_read(message, "u", &desktop->active_watch_) < 0) desktop->gone_ = true;
  return 0;
}

int MutterDesktop::on_idle_time(sd_bus_message* message, void* self, sd_bus_error*) {
  auto* desktop = static_cast<MutterDesktop*>(self);
  if (sd_bus_message_is_method_error(message, nullptr) != 0)
    desktop->gone_ = true;
  else
    desktop->hooks_.answered();
  return 0;
}

void MutterDesktop::dispatch() {
  int done = 1;
  while (done > 0 && !gone_) done = sd_bus_process(bus_.get(), nullptr);
  if (done < 0 || gone_) throw DesktopGone("Mutter's IdleMonitor has gone");
}

void MutterDesktop::probe() { call("GetIdletime", on_idle_time); }

}  // namespace sublet::agent
