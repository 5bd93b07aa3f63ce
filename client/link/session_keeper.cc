#include "client/link/session_keeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/os_error.h"
#include "client/attempts/work.h"
#include "protocol/lease.h"

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSoonMs = 1000;  // least time between two renewals caused by changes

int64_t now_ns() { return system_clock().boot_ns(); }

}  // namespace

SessionKeeper::SessionKeeper(ServerCalls& server, const MachineFacts& facts,
                             const MachineIdentity& identity, const std::string& server_socket,
                             KeeperHooks hooks)
    : server_(server),
      facts_(facts),
      identity_(identity),
      hooks_(std::move(hooks)),
      socket_(server_socket),
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      watch_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (!event_.valid()) throw OsError(errno, "make", "an event descriptor");
}

SessionKeeper::~SessionKeeper() { stop(false); }

void SessionKeeper::start() {
  thread_ = std::thread([this] { run(); });
}

void SessionKeeper::wake() {
  uint64_t one = 1;
  if (write(event_.get(), &one, sizeof one) < 0) {
    // The counter is full: the thread will wake up anyway.
  }
}

void SessionKeeper::presence_changed() {
  presence_ = true;
  wake();
}

void SessionKeeper::something_changed() {
  // Where short jobs run that is often; once the thread knows, it need not be woken again.
  if (!changed_.exchange(true)) wake();
}

void SessionKeeper::session_ended() {
  over_ = true;
  wake();
}

void SessionKeeper::stop(bool withdraw) {
  withdraw_ = withdraw;
  stopping_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void SessionKeeper::watch_socket() {
  // Called repeatedly, because the folder may not exist yet. Adding the same watch
  // twice has no effect.
  if (watch_.valid() && !socket_.empty())
    inotify_add_watch(watch_.get(), folder_of(socket_).c_str(), IN_CREATE | IN_MOVED_TO);
}

bool SessionKeeper::socket_is_new() {
  alignas(inotify_event) char buffer[4096];
  std::string name = socket_.substr(socket_.rfind('/') + 1);
  bool found = false;
  for (ssize_t n; watch_.valid() && (n = read(watch_.get(), buffer, sizeof buffer)) > 0;) {
    for (char* at = buffer; at < buffer + n;) {
      auto* event = reinterpret_cast<inotify_event*>(at);
      if (event->len > 0 && name == event->name) found = true;
      at += sizeof(inotify_event) + event->len;
    }
  }
  return found;
}

bool SessionKeeper::wait(int64_t ms) {
  watch_socket();
  pollfd both[2] = {{event_.get(), POLLIN, 0}, {watch_.get(), POLLIN, 0}};
  poll(both, 2, static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000)));
  uint64_t count = 0;
  if (read(event_.get(), &count, sizeof count) < 0) {
    // The pause is over, or the socket's folder has changed.
  }
  return socket_is_new();
}

void SessionKeeper::failed(const std::string& why) {
  if (complaint_.empty())
    log(Severity::warning) << "not connected to the server: " << why << "; trying again";
  complaint_ = why;
  pause_ms_ = next_pause(pause_ms_);
}

void SessionKeeper::back() {
  if (!complaint_.empty()) log(Severity::info) << "the server is back";
  complaint_.clear();
  pause_ms_ = 0;
}

bool SessionKeeper::connect() { return over_ ? join() : attach_again(); }

// The session exists, but its connection may be lost: over a new one the server can
// call us back only after it has got our reference again.
bool SessionKeeper::attach_again() {
  try {
    server_.attach();
  } catch (const ServerError& error) {
    lose(error);
    return false;
  }
  return renew();
}

void SessionKeeper::lose(const ServerError& error) {
  away_ = true;
  const bool session_over = error.kind() == ServerError::Kind::kSessionOver;
  if (!error.passing() || session_over) over_ = true;
  // The server is there; the log will say that the client joined again.
  if (session_over)
    pause_ms_ = next_pause(pause_ms_);
  else
    failed(error.what());
}

void SessionKeeper::log_joined() {
  log(Severity::info) << (joined_ && !complaint_.empty() ? "the server is back: " : "")
                      << "joined the pool " << (joined_ ? "again " : "") << "as machine "
                      << identity_.machine << " ('" << facts_.name << "')";
  joined_ = true;
  complaint_.clear();
}

bool SessionKeeper::join() {
  try {
    over_ = false;
    const int64_t asked = now_ns();
    Joined joined = server_.join(identity_, facts_);
    joined.asked_ns = asked;
    identity_ = joined.identity;
    renew_every_ms_ = std::max<int64_t>(100, joined.renew_every_ms > 0
                                                 ? joined.renew_every_ms
                                                 : protocol::renew_every_ms(joined.lease_ms));
    hooks_.joined(joined);
    server_.attach();
    log_joined();
    return renew();
  } catch (const std::exception& error) {
    away_ = over_ = true;
    failed(error.what());
    return false;
  }
}

bool SessionKeeper::renew() {
  // First: what changes from here on may be missing below.
  changed_ = false;
  std::vector<HeldAttempt> held;
  if (!hooks_.held(&held)) return false;
  presence_ = false;
  int64_t sent = now_ns();
  try {
    Renewed renewed = server_.renew(hooks_.state(), held);
    hooks_.renewed(sent, renewed);
    last_renew_ns_ = sent;
    next_renew_ns_ = sent + renew_every_ms_ * kMs;
    away_ = false;
    back();
    return true;
  } catch (const ServerError& error) {
    lose(error);
    return false;
  }
}

bool SessionKeeper::report() {
  presence_ = false;
  try {
    server_.report_state(hooks_.state());
    return true;
  } catch (const ServerError& error) {
    lose(error);
    return false;
  }
}

int64_t SessionKeeper::next_wait_ms(int64_t now) const {
  if (presence_) return 0;
  int64_t due = next_renew_ns_;
  if (changed_) due = std::min(due, last_renew_ns_ + kSoonMs * kMs);
  return std::max<int64_t>(0, (due - now + kMs - 1) / kMs);
}

void SessionKeeper::run() {
  while (!stopping_) {
    if (over_ || away_) {
      if (!connect() && !stopping_) {
        // Changes of presence wake the thread; they must not shorten the pause.
        int64_t until = now_ns() + pause_ms_ * kMs;
        bool anew = false;
        for (int64_t now = now_ns(); now < until && !anew && !stopping_; now = now_ns())
          anew = wait((until - now + kMs - 1) / kMs);
        // The socket is created a moment before the server listens on it.
        if (anew) pause_ms_ = 0;
      }
      continue;
    }
    // A server was started: it may or may not know this session, so renew at once.
    if (wait(next_wait_ms(now_ns()))) next_renew_ns_ = 0;
    if (stopping_ || over_) continue;
    if (presence_ && !report()) continue;
    int64_t now = now_ns();
    bool soon = changed_ && now >= last_renew_ns_ + kSoonMs * kMs;
    if (now >= next_renew_ns_ || soon) renew();
  }
  if (!withdraw_ || over_) return;
  try {
    server_.withdraw();
    log(Severity::info) << "withdrew from the pool";
  } catch (const ServerError& error) {
    log(Severity::warning) << "left without withdrawing: " << error.what();
  }
}

}  // namespace sublet::client
