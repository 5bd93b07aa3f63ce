#include "loadmon/listeners.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/os_error.h"

namespace sublet::loadmon {
namespace {
constexpr int64_t kHelloWithin = 5'000'000'000;
// Frames read from one connection, and connections, before others get their turn.
constexpr int kFramesInARow = 16;
constexpr int kEventsInARow = 8;
// Room for about 20 frames, 5 s of heartbeats: a listener that reads nothing for longer
// is considered unresponsive.
constexpr int kSendBuffer = 8192;
}  // namespace

Listeners::Listeners(Attempts* attempts, size_t most, Hooks hooks)
    : events_(epoll_create1(EPOLL_CLOEXEC)),
      attempts_(attempts),
      most_(most),
      hooks_(std::move(hooks)) {
  if (!events_.valid()) throw OsError(errno, "watch", "connections");
}

void Listeners::read_all() {
  epoll_event events[kEventsInARow];
  const int count = epoll_wait(events_.get(), events, kEventsInARow, 0);
  for (int n = 0; n < count; ++n) {
    auto* listener = static_cast<Listener*>(events[n].data.ptr);
    for (int i = 0; i < kFramesInARow && read_one(listener); ++i) {
    }
  }
}

void Listeners::add(UniqueFd fd, pid_t pid) {
  if (count_ >= most_) {
    if (!refused_)
      log(Severity::warning) << "more than " << most_ << " connections: further ones are refused";
    refused_ = true;
    return;
  }
  auto free = std::find_if(listeners_.begin(), listeners_.end(),
                           [](const auto& listener) { return !listener->fd.valid(); });
  if (free == listeners_.end()) {
    listeners_.push_back(std::make_unique<Listener>());
    free = std::prev(listeners_.end());
  }
  Listener* listener = free->get();
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  listener->fd = std::move(fd);
  epoll_event wanted = {};
  wanted.events = EPOLLIN;
  wanted.data.ptr = listener;
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, listener->fd.get(), &wanted) != 0) {
    log(Severity::error) << "cannot watch the connection of process " << pid;
    listener->fd.reset();
    return;
  }
  listener->role = Listener::Role::none;
  listener->pid = pid;
  listener->attempt = nullptr;
  listener->hello_by = hooks_.now() + kHelloWithin;
  listener->full = false;
  ++count_;
  hooks_.changed();
}

bool Listeners::send(Listener* listener, const sublet_frame& frame) noexcept {
  const ssize_t sent =
      ::send(listener->fd.get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(sizeof frame);
}

void Listeners::ask(Listener* listener, const sublet_frame& frame, int64_t now) noexcept {
  // If the socket is full, the shepherd has not been reading for a long time.
  const bool sent = send(listener, frame);
  attempts_->ask(listener->attempt, frame, now, sent ? now + SUBLET_SHEPHERD_ACK_NS : now);
}

// From here on the owner is waiting: one non-blocking send() per connection, using
// attempts that were set up when it was made. No allocation, logging or locking. If
// sending fails, Attempts::enforce() acts afterwards, so that it does not delay others.
void Listeners::evict(const sublet_frame& frame, int64_t now) noexcept {
  for (const auto& listener : listeners_) {
    if (listener->attempt != nullptr) ask(listener.get(), frame, now);
  }
  for (const auto& listener : listeners_) {
    if (listener->role == Listener::Role::client) listener->full = !send(listener.get(), frame);
  }
  attempts_->ask_unattended(frame, now, now + SUBLET_SHEPHERD_ACK_NS);
}

void Listeners::explain(const sublet_frame& cause) noexcept {
  for (const auto& listener : listeners_)
    if (listener->role == Listener::Role::client) send(listener.get(), cause);
}

void Listeners::tell(const sublet_frame& frame) noexcept {
  if (frame.state == SUBLET_PRESENCE_AWAY) attempts_->owner_away();
  for (const auto& listener : listeners_) {
    if (listener->role == Listener::Role::none || has_empty_slot(*listener)) continue;
    if (listener->attempt != nullptr && frame.state != SUBLET_PRESENCE_AWAY)
      attempts_->reminded(listener->attempt);
    const bool full = !send(listener.get(), frame) && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (full && !listener->full)
      log(Severity::warning) << "process " << listener->pid << " does not read what it is sent";
    listener->full = full;
  }
}

bool Listeners::read_one(Listener* listener) {
  if (!listener->fd.valid()) return false;
  sublet_frame frame;
  const ssize_t got =
      recv(listener->fd.get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  const bool well_formed = got == static_cast<ssize_t>(sizeof frame) &&
                           frame.magic == SUBLET_FRAME_MAGIC && frame.reserved == 0;
  if (!well_formed) {
    if (got > 0)
      log(Severity::warning) << "process " << listener->pid << " sent invalid data: disconnected";
    close(listener);
    return false;
  }
  const bool again = listener->role == Listener::Role::client ? frame.job == 0 : frame.job != 0;
  if (frame.kind == SUBLET_FRAME_HELLO && (listener->role == Listener::Role::none || again)) {
    hello(listener, frame);
  } else if (frame.kind == SUBLET_FRAME_ENDED && listener->attempt != nullptr) {
    ended(listener, frame);
  } else if (frame.kind == SUBLET_FRAME_ACK && listener->attempt != nullptr) {
    attempts_->acknowledged(listener->attempt, frame, hooks_.now());
  }
  return listener->fd.valid();
}

// False if another connection has it.
bool Listeners::take_attempt(Listener* listener, const sublet_frame& frame) {
  Attempt* attempt = hooks_.find_attempt(frame.job, frame.attempt);
  if (attempt->attended) {
    log(Severity::warning) << "process " << listener->pid << " claims attempt " << frame.job << "."
                           << frame.attempt << ", which another connection has: refused";
    close(listener);
    return false;
  }
  attempt->attended = true;
  attempts_->ended_before(listener->pid, attempt);
  listener->attempt = attempt;
  listener->role = Listener::Role::shepherd;
  return true;
}

void Listeners::ended(Listener* listener, const sublet_frame& frame) {
  if (is_of(*listener, frame)) ended(listener);
}

void Listeners::ended(Listener* listener) {
  Attempt* const attempt = listener->attempt;
  listener->attempt = nullptr;
  listener->full = false;
  attempts_->ended(attempt);
  hooks_.changed();
}

void Listeners::hello(Listener* listener, const sublet_frame& frame) {
  if (listener->attempt != nullptr) {
    if (is_of(*listener, frame)) return;
    ended(listener);  // the one before
  }
  if (frame.job == 0)
    listener->role = Listener::Role::client;
  else if (!take_attempt(listener, frame))
    return;
  listener->hello_by = 0;
  const sublet_frame state = hooks_.current();
  if (listener->attempt == nullptr || state.state == SUBLET_PRESENCE_AWAY) {
    send(listener, state);
  } else {
    // It was asked before its shepherd connected; ask again, now through the shepherd.
    if (listener->attempt->stage == Attempt::Stage::asked)
      listener->attempt->stage = Attempt::Stage::unasked;
    ask(listener, state, hooks_.now());
  }
  hooks_.changed();
}

void Listeners::close(Listener* listener) {
  epoll_ctl(events_.get(), EPOLL_CTL_DEL, listener->fd.get(), nullptr);
  listener->fd.reset();
  listener->role = Listener::Role::none;
  listener->hello_by = 0;
  listener->full = false;
  --count_;
  refused_ = false;
  if (listener->attempt != nullptr) hooks_.shepherd_left(listener->attempt);
  listener->attempt = nullptr;
  hooks_.changed();
}

void Listeners::close_mute(int64_t now) {
  for (const auto& listener : listeners_) {
    auto mute = [&] {
      return listener->fd.valid() && listener->hello_by != 0 && now >= listener->hello_by;
    };
    // If this process could not run, the HELLO may be waiting unread.
    while (mute() && read_one(listener.get())) {
    }
    if (!mute()) continue;
    log(Severity::warning) << "process " << listener->pid
                           << " did not say in time who it is: disconnected";
    close(listener.get());
  }
}

int64_t Listeners::due() const {
  int64_t due = Attempts::kNever;
  for (const auto& listener : listeners_) {
    if (listener->fd.valid() && listener->hello_by != 0) due = std::min(due, listener->hello_by);
  }
  return due;
}

bool Listeners::needs_heartbeat() const {
  return std::any_of(listeners_.begin(), listeners_.end(), [](const auto& listener) {
    return listener->attempt != nullptr || listener->full;
  });
}

std::vector<pid_t> Listeners::pids() const {
  std::vector<pid_t> pids;
  for (const auto& listener : listeners_) {
    if (listener->role != Listener::Role::none) pids.push_back(listener->pid);
  }
  return pids;
}

}  // namespace sublet::loadmon
