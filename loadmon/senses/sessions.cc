#include "loadmon/senses/sessions.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstring>

#include "base/log.h"
#include "base/os_error.h"
#include "loadmon/senses/systemd_bus.h"

namespace sublet::loadmon {
namespace {
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kRetry = 10'000 * kMs;
constexpr int64_t kGrace = 10'000 * kMs;
constexpr size_t kMostSessions = 256;
constexpr int kMostMessages = 256;  // handled at a time
constexpr const char* kName = "org.freedesktop.login1";
constexpr const char* kPath = "/org/freedesktop/login1";
constexpr const char* kManager = "org.freedesktop.login1.Manager";
constexpr const char* kSession = "org.freedesktop.login1.Session";
constexpr const char* kProperties = "org.freedesktop.DBus.Properties";
constexpr const char* kChanged =
    "type='signal',sender='org.freedesktop.login1',interface='org.freedesktop.DBus.Properties',"
    "member='PropertiesChanged',path_namespace='/org/freedesktop/login1/session'";
constexpr const char* kManagerChanged =
    "type='signal',sender='org.freedesktop.login1',interface='org.freedesktop.DBus.Properties',"
    "member='PropertiesChanged',path='/org/freedesktop/login1'";
constexpr const char* kOwnerChanged =
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
    "member='NameOwnerChanged',arg0='org.freedesktop.login1'";

struct UnrefMessage {
  void operator()(sd_bus_message* message) const { systemd::bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, UnrefMessage>;

bool read_text(sd_bus_message* message, std::string* value) {
  const char* text = nullptr;
  if (systemd::bus_message_read(message, "v", "s", &text) < 0) return false;
  *value = text;
  return true;
}

bool read_flag(sd_bus_message* message, bool* value) {
  int flag = 0;
  if (systemd::bus_message_read(message, "v", "b", &flag) < 0) return false;
  *value = flag != 0;
  return true;
}

bool read_account(sd_bus_message* message, uid_t* account) {
  uint32_t uid = 0;
  const char* path = nullptr;
  if (systemd::bus_message_read(message, "v", "(uo)", &uid, &path) < 0) return false;
  *account = uid;
  return true;
}

bool read_property(sd_bus_message* message, const std::string& name, Session* session) {
  if (name == "Id") return read_text(message, &session->id);
  if (name == "Display") return read_text(message, &session->display);
  if (name == "Type") return read_text(message, &session->type);
  if (name == "Class") return read_text(message, &session->category);
  if (name == "State") return read_text(message, &session->state);
  if (name == "Remote") return read_flag(message, &session->remote);
  if (name == "LockedHint") return read_flag(message, &session->locked);
  if (name == "Active") return read_flag(message, &session->active);
  if (name == "User") return read_account(message, &session->account);
  return systemd::bus_message_skip(message, "v") >= 0;
}

// The answer of GetAll: a{sv}.
bool read_session(sd_bus_message* message, Session* session) {
  if (systemd::bus_message_enter_container(message, 'a', "{sv}") < 0) return false;
  int more;
  while ((more = systemd::bus_message_enter_container(message, 'e', "sv")) > 0) {
    const char* name = nullptr;
    if (systemd::bus_message_read(message, "s", &name) < 0 ||
        !read_property(message, name, session) || systemd::bus_message_exit_container(message) < 0)
      return false;
  }
  return more == 0;
}

protocol::Place place_of(const Session& session) {
  return protocol::Place("session " + session.id);
}

// The path of a session in a signal SessionNew or SessionRemoved.
std::string session_path(sd_bus_message* signal) {
  const char *id = nullptr, *path = nullptr;
  return systemd::bus_message_read(signal, "so", &id, &path) < 0 ? "" : path;
}
}  // namespace

// Called by the bus, from systemd::bus_process().
struct Sessions::Callbacks {
  static int on_answer(sd_bus_message* answer, void* question, sd_bus_error*) {
    Sessions& self = *static_cast<const Question*>(question)->asker;
    const auto asked = self.questions_.extract(static_cast<const Question*>(question));
    if (asked.empty()) return 0;
    const Question& one = *asked.mapped();
    (self.*one.handle)(answer, one.path);
    return 0;
  }

  static int on_new(sd_bus_message* signal, void* self, sd_bus_error*) {
    auto& sense = *static_cast<Sessions*>(self);
    const std::string path = session_path(signal);
    if (path.empty()) return 0;
    sense.arriving_.insert(path);
    sense.examine(path);
    return 0;
  }

  static int on_removed(sd_bus_message* signal, void* self, sd_bus_error*) {
    auto& sense = *static_cast<Sessions*>(self);
    const std::string path = session_path(signal);
    sense.sessions_.erase(path);
    sense.arriving_.erase(path);
    return 0;
  }

  static int on_changed(sd_bus_message* signal, void* self, sd_bus_error*) {
    auto& sense = *static_cast<Sessions*>(self);
    const char* path = systemd::bus_message_get_path(signal);
    if (path == nullptr) return 0;
    if (strcmp(path, kPath) == 0)
      sense.ask_who_inhibits();
    else
      sense.examine(path);
    return 0;
  }

  static int on_sleep(sd_bus_message* signal, void* self, sd_bus_error*) {
    auto& sense = *static_cast<Sessions*>(self);
    int sleeps = 0;
    if (systemd::bus_message_read(signal, "b", &sleeps) < 0) return 0;
    sense.sleeps_ = sleeps != 0;
    if (sense.sleeps_) return 0;
    // Somebody woke it.
    sense.seen_at_ = sense.now_;
    sense.seen_in_ = protocol::Place("woken up");
    sense.inhibit_sleep();
    return 0;
  }

  static int on_owner_changed(sd_bus_message* signal, void* self, sd_bus_error*) {
    auto& sense = *static_cast<Sessions*>(self);
    const char *name = nullptr, *before = nullptr, *after = nullptr;
    if (systemd::bus_message_read(signal, "sss", &name, &before, &after) < 0) return 0;
    if (*after != 0) {
      sense.begin();
    } else if (sense.missed_at_ == 0) {
      sense.missing_ = "logind has ended";
      sense.missed_at_ = sense.now_;
    }
    return 0;
  }
};

void Sessions::Unref::operator()(sd_bus* bus) const { systemd::bus_flush_close_unref(bus); }

Sessions::Sessions(Others others, int64_t film_ms)
    : others_(std::move(others)), film_ms_(film_ms), events_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!events_.valid()) throw OsError(errno, "watch", "sessions");
  // Now there is time to wait for a disk, later there is not.
  if (systemd::has_bus()) begin_to_load();
  if (library_.valid()) library_.wait();
  connect(0);
}

Sessions::~Sessions() = default;

void Sessions::begin_to_load() { library_ = std::async(std::launch::async, systemd::load); }

bool Sessions::can_connect(int64_t now) {
  if (!library_.valid()) {
    if (!systemd::has_bus()) {
      lose(std::string("the system bus: ") + std::strerror(ENOENT), now);
      return false;
    }
    begin_to_load();
  }
  if (library_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  if (!library_.get().empty()) lose(library_.get(), now);
  return library_.get().empty();
}

void Sessions::connect(int64_t now) {
  retry_at_ = now + kRetry;
  failure_.clear();
  if (!can_connect(now)) return;
  sd_bus* bus = nullptr;
  const int error = systemd::bus_open_system(&bus);
  bus_.reset(bus);
  if (error < 0) return lose(std::string("the system bus: ") + std::strerror(-error), now);
  if (!watch_signals()) return lose("the system bus takes no watch", now);
  begin();
  update_events();
}

void Sessions::begin() {
  list();
  inhibit_sleep();
  ask_who_inhibits();
}

bool Sessions::watch_signals() {
  sd_bus* bus = bus_.get();
  const auto watch = [bus, this](const char* member, sd_bus_message_handler_t handler) {
    // Not waited for: the answer is taken for granted, and a failure closes the connection.
    return systemd::bus_match_signal_async(bus, nullptr, kName, kPath, kManager, member, handler,
                                           nullptr, this) >= 0;
  };
  return watch("SessionNew", Callbacks::on_new) && watch("SessionRemoved", Callbacks::on_removed) &&
         watch("PrepareForSleep", Callbacks::on_sleep) &&
         systemd::bus_add_match_async(bus, nullptr, kChanged, Callbacks::on_changed, nullptr,
                                      this) >= 0 &&
         systemd::bus_add_match_async(bus, nullptr, kManagerChanged, Callbacks::on_changed, nullptr,
                                      this) >= 0 &&
         systemd::bus_add_match_async(bus, nullptr, kOwnerChanged, Callbacks::on_owner_changed,
                                      nullptr, this) >= 0;
}

void Sessions::lose(const std::string& why, int64_t now) {
  if (watched_ >= 0) epoll_ctl(events_.get(), EPOLL_CTL_DEL, watched_, nullptr);
  watched_ = -1;
  bus_.reset();
  questions_.clear();
  arriving_.clear();
  delay_.reset();
  sleeps_ = attends_ = false;
  missing_ = why;
  if (missed_at_ == 0) missed_at_ = now;
  retry_at_ = now + kRetry;
}

void Sessions::update_events() {
  if (!bus_) return;
  const int fd = systemd::bus_get_fd(bus_.get());
  const int wanted = systemd::bus_get_events(bus_.get());
  epoll_event event = {};
  event.events = (wanted & POLLIN ? EPOLLIN : 0u) | (wanted & POLLOUT ? EPOLLOUT : 0u);
  event.data.fd = fd;
  if (fd < 0 || wanted < 0) return;
  if (epoll_ctl(events_.get(), fd == watched_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0)
    watched_ = fd;
}

void Sessions::process(int64_t now) {
  now_ = now;
  if (!bus_) {
    if (now >= retry_at_) connect(now);
    return;
  }
  int done = 1;
  for (int n = 0; done > 0 && n < kMostMessages && failure_.empty(); ++n)
    done = systemd::bus_process(bus_.get(), nullptr);
  if (done < 0) failure_ = std::string("the system bus: ") + std::strerror(-done);
  if (!failure_.empty()) return lose(failure_, now);
  update_events();
}

bool Sessions::sample(int64_t now, const JobsEffect& /*jobs*/, protocol::PresenceSample* sample) {
  if (sleeps_ && delay_.valid() && !others_.jobs_run()) delay_.reset();
  return notice(now, sample);
}

bool Sessions::notice(int64_t now, protocol::PresenceSample* sample) {
  process(now);
  fill(now, sample);
  // Where there has never been a logind nothing is missed; a restart of it takes a moment.
  return !was_there_ || missed_at_ == 0 || now - missed_at_ < kGrace;
}

void Sessions::fill(int64_t now, protocol::PresenceSample* sample) const {
  sample->sleeps = sleeps_;
  if (attends_) note_media("a program that keeps the screen on", {}, sample);
  look_at_desktops(now, sample);
  if (seen_at_ != kUnseen) note_input(now, seen_at_, "sessions", seen_in_, sample);
}

void Sessions::look_at_desktops(int64_t now, protocol::PresenceSample* sample) const {
  std::vector<Session> graphical;
  for (const auto& [path, session] : sessions_)
    if (session.is_somebody() && session.is_graphical()) graphical.push_back(session);
  const std::vector<WatchedDesktop> desktops = others_.desktops();
  const std::vector<size_t> shown = shown_sessions(desktops, graphical);
  const bool devices_see = others_.devices_see();
  sample->unseen = false;
  for (size_t s = 0; s < graphical.size(); ++s) {
    const bool at_devices = devices_see && !graphical[s].remote;
    if (at_devices || std::find(shown.begin(), shown.end(), s) != shown.end()) continue;
    sample->unseen = true;
    sample->unseen_place = place_of(graphical[s]);
  }
  for (size_t d = 0; d < desktops.size(); ++d) {
    // A locked screen shows no film, and one of another session is not looked at.
    const bool watchable =
        shown[d] == kNoSession || (!graphical[shown[d]].locked && graphical[shown[d]].active);
    if (watchable && is_film(desktops[d], now, sample->input_age_ms))
      note_media("a full-screen program", desktops[d].place, sample);
  }
}

bool Sessions::is_film(const WatchedDesktop& desktop, int64_t now, int64_t input_age_ms) const {
  const int64_t untouched_ms = (now - desktop.touched_at) / kMs;
  const int64_t age_ms = input_age_ms < 0 ? untouched_ms : std::min(untouched_ms, input_age_ms);
  return desktop.full_screen && age_ms < film_ms_;
}

std::string Sessions::absence() const {
  return missing_.empty() ? "" : "logins, locked screens and sleep are not seen: " + missing_;
}

void Sessions::ask(const std::string& path, const char* interface, const char* member,
                   Handle handle, const char* types, ...) {
  sd_bus_message* made = nullptr;
  int error = systemd::bus_message_new_method_call(bus_.get(), &made, kName, path.c_str(),
                                                   interface, member);
  const Message call(made);
  if (error >= 0) error = systemd::bus_message_set_auto_start(call.get(), 0);
  va_list arguments;
  va_start(arguments, types);
  if (error >= 0 && *types != 0) error = systemd::bus_message_appendv(call.get(), types, arguments);
  va_end(arguments);
  auto question = std::make_unique<Question>(Question{this, path, handle});
  if (error >= 0)
    error = systemd::bus_call_async(bus_.get(), nullptr, call.get(), Callbacks::on_answer,
                                    question.get(), 0);
  if (error < 0) {
    failure_ = std::string("the system bus: ") + std::strerror(-error);
    return;
  }
  const Question* key = question.get();
  questions_[key] = std::move(question);
}

void Sessions::list() { ask(kPath, kManager, "ListSessions", &Sessions::listed, ""); }

void Sessions::listed(sd_bus_message* answer, const std::string& /*path*/) {
  if (systemd::bus_message_is_method_error(answer, nullptr) != 0) {
    missing_ = "logind does not answer";
    return;
  }
  was_there_ = true;
  missed_at_ = 0;
  missing_.clear();
  if (systemd::bus_message_enter_container(answer, 'a', "(susso)") < 0) return;
  const char *id, *user, *seat, *path;
  uint32_t uid;
  std::set<std::string> there;
  while (systemd::bus_message_read(answer, "(susso)", &id, &uid, &user, &seat, &path) > 0)
    there.insert(path);
  std::erase_if(sessions_, [&there](const auto& entry) { return !there.contains(entry.first); });
  for (const std::string& one : there) examine(one);
}

void Sessions::examine(const std::string& path) {
  if (sessions_.size() + questions_.size() >= kMostSessions) return;
  ask(path, kProperties, "GetAll", &Sessions::examined, "s", kSession);
}

void Sessions::examined(sd_bus_message* answer, const std::string& path) {
  const bool arrives = arriving_.erase(path) > 0;
  Session session;
  if (systemd::bus_message_is_method_error(answer, nullptr) != 0 ||
      !read_session(answer, &session)) {
    sessions_.erase(path);
    return;
  }
  const auto before = sessions_.find(path);
  const bool known = before != sessions_.end();
  const bool came_back = known && ((before->second.locked && !session.locked) ||
                                   (!before->second.active && session.active));
  if (session.is_somebody() && (arrives || came_back)) {
    seen_at_ = now_;
    seen_in_ = place_of(session);
  }
  sessions_[path] = session;
}

void Sessions::inhibit_sleep() {
  ask(kPath, kManager, "Inhibit", &Sessions::inhibited, "ssss", "sleep", "Sublet",
      "jobs save their work and leave", "delay");
}

void Sessions::inhibited(sd_bus_message* answer, const std::string& /*path*/) {
  int fd = -1;
  if (systemd::bus_message_is_method_error(answer, nullptr) == 0 &&
      systemd::bus_message_read(answer, "h", &fd) >= 0) {
    delay_.reset(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    return;
  }
  if (!was_there_) return;
  const sd_bus_error* error = systemd::bus_message_get_error(answer);
  log(Severity::info) << "the machine may go to sleep before jobs have saved: "
                      << (error != nullptr && error->message != nullptr ? error->message
                                                                        : "logind refuses a delay");
}

void Sessions::ask_who_inhibits() {
  ask(kPath, kProperties, "Get", &Sessions::idle_inhibited, "ss", kManager, "BlockInhibited");
}

void Sessions::idle_inhibited(sd_bus_message* answer, const std::string& /*path*/) {
  std::string what;
  if (systemd::bus_message_is_method_error(answer, nullptr) != 0 || !read_text(answer, &what))
    what = "";
  // "shutdown:idle"
  attends_ = (":" + what + ":").find(":idle:") != std::string::npos;
}

}  // namespace sublet::loadmon
