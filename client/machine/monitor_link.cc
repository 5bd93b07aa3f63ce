#include "client/machine/monitor_link.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>

#include "base/clock.h"
#include "base/local_socket.h"
#include "base/log.h"
#include "base/process.h"
#include "client/attempts/work.h"

namespace sublet::client {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kConnectPauseNs = 20 * kMs;
constexpr int64_t kFirstMonitorNs = 5'000 * kMs;

// The monitor answers with its present state.
bool say_hello(int socket) {
  sublet_frame hello = {};
  hello.magic = SUBLET_FRAME_MAGIC;
  hello.kind = SUBLET_FRAME_HELLO;
  hello.arg[0] = getpid();
  return ::send(socket, &hello, sizeof hello, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

}  // namespace

MonitorLink::MonitorLink(Loop& loop, Workers& local, const MonitorSettings& settings,
                         std::function<void(const sublet_frame&)> presence,
                         std::function<void(const sublet_frame&)> cause, std::function<void()> lost,
                         std::function<void(pid_t)> child)
    : loop_(loop),
      local_(local),
      settings_(settings),
      start_(settings.command, settings.socket),
      presence_(std::move(presence)),
      cause_(std::move(cause)),
      lost_(std::move(lost)),
      child_(std::move(child)) {}

MonitorLink::~MonitorLink() {
  if (socket_.valid()) loop_.unwatch(socket_.get());
}

void MonitorLink::start(int64_t now) {
  give_up_ns_ = now + kFirstMonitorNs;
  connect(now);
}

void MonitorLink::connect(int64_t now) {
  connect_due_ns_ = now + kConnectPauseNs;
  try {
    UniqueFd socket = connect_local(SocketKind::seqpacket, settings_.socket, true);
    PeerCredentials peer = peer_credentials(socket.get());
    if (peer.uid != 0 && peer.uid != geteuid()) {
      log(Severity::error) << settings_.socket << " is served by uid " << peer.uid
                           << ", which is not trusted as a load monitor";
      connect_due_ns_ = now + 5'000 * kMs;
      return;
    }
    if (!say_hello(socket.get())) return;
    socket_ = std::move(socket);
    // While the monitor holds the other end, its pid cannot be reused.
    auto started = process_start_time(peer.pid);
    peer_ = started ? open_process({peer.pid, *started}) : UniqueFd();
    heard_ns_ = silent_from_ns_ = now;
    connect_due_ns_ = kNever;
    loop_.watch(socket_.get(), [this] { read(); });
  } catch (const OsError& error) {
    if (now < spawn_due_ns_) return;
    const bool in_vain = pause_ms_ > 0;
    pause_ms_ = next_pause(pause_ms_);
    // At least a second to start up, plus the back-off.
    spawn_due_ns_ = now + (1000 + pause_ms_) * kMs;
    local_.post([this, in_vain] {
      if (const std::optional<pid_t> pid = start_.start(in_vain)) child_(*pid);
    });
  }
}

void MonitorLink::read() {
  for (;;) {
    sublet_frame frame;
    ssize_t n = recv(socket_.get(), &frame, sizeof frame, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return lose("has gone");
    if (n != static_cast<ssize_t>(sizeof frame) || frame.magic != SUBLET_FRAME_MAGIC)
      return lose("sends invalid data");
    if (frame.kind == SUBLET_FRAME_CAUSE) cause_(frame);
    if (frame.kind != SUBLET_FRAME_PRESENCE) continue;
    heard_ns_ = system_clock().boot_ns();
    give_up_ns_ = 0;
    // An answer to this client proves nothing about the shepherds.
    if (doubted_ns_ == kNever) accusations_ = 0;
    doubted_ns_ = kNever;
    pause_ms_ = 0;
    presence_(frame);
  }
}

void MonitorLink::lose(const char* why) {
  lost_();  // first, because of the owner
  accusations_ = 0;
  doubted_ns_ = kNever;
  loop_.unwatch(socket_.get());
  socket_.reset();
  connect_due_ns_ = system_clock().boot_ns() + kConnectPauseNs;
  log(Severity::warning) << "the load monitor " << why << ": the owner is assumed back";
}

void MonitorLink::check_silence(int64_t since, int64_t now) {
  if (!socket_.valid() || now <= silent_at(since)) return;
  read();
  if (socket_.valid() && now > silent_at(since)) replace("is silent", now);
}

int64_t MonitorLink::silent_at(int64_t since) const {
  since = std::min(since, doubted_ns_);
  if (since == kNever) return kNever;
  return std::max({heard_ns_, silent_from_ns_, since}) + SUBLET_MONITOR_SILENCE_NS;
}

void MonitorLink::accuse(int64_t now) {
  constexpr int kEnough = 3;
  if (!socket_.valid()) return;
  if (++accusations_ >= kEnough) return replace("does not send to shepherds", now);
  // Without jobs it sends rarely, so silence alone would not be noticed before the next job.
  if (doubted_ns_ == kNever) doubted_ns_ = now;
  say_hello(socket_.get());
}

void MonitorLink::replace(const char* why, int64_t now) {
  UniqueFd hung = std::move(peer_);
  lose(why);
  // While it lives, it holds the socket's path, so no other can replace it.
  if (hung.valid()) syscall(SYS_pidfd_send_signal, hung.get(), SIGKILL, nullptr, 0);
  spawn_due_ns_ = now;
}

void MonitorLink::tick(int64_t now) {
  if (give_up_ns_ != 0 && now >= give_up_ns_) {
    give_up_ns_ = 0;
    lost_();
  }
  if (!socket_.valid() && now >= connect_due_ns_) connect(now);
}

int64_t MonitorLink::next_due(int64_t since) const {
  int64_t due = give_up_ns_ != 0 ? give_up_ns_ : kNever;
  if (!socket_.valid()) return std::min(due, connect_due_ns_);
  const int64_t silent = silent_at(since);
  return silent == kNever ? due : std::min<int64_t>(due, silent + 10 * kMs);
}

}  // namespace sublet::client
