#include "loadmon/agent/monitor_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <limits>
#include <utility>

#include "base/local_socket.h"

namespace sublet::agent {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kFirstRetry = 250 * kMs;
constexpr int64_t kLastRetry = 10'000 * kMs;
// A monitor that hangs up sooner does not want this agent.
constexpr int64_t kAccepted = 10'000 * kMs;

sublet_frame frame_of(sublet_frame_kind kind) {
  sublet_frame frame = {};
  frame.magic = SUBLET_FRAME_MAGIC;
  frame.kind = static_cast<uint16_t>(kind);
  return frame;
}

sublet_frame greeting(const Desktop& desktop) {
  sublet_frame frame = frame_of(SUBLET_FRAME_AGENT);
  frame.state = desktop.kind();
  frame.arg[0] = desktop.server();
  frame.arg[1] = desktop.local_display();
  return frame;
}

}  // namespace

MonitorLink::MonitorLink(std::vector<std::string> folders, const Desktop& desktop)
    : folders_(std::move(folders)), greeting_(greeting(desktop)), retry_after_(kFirstRetry) {}

int64_t MonitorLink::due() const {
  return monitor_.valid() ? std::numeric_limits<int64_t>::max() : retry_at_;
}

bool MonitorLink::connect(int64_t now) {
  std::string tried;
  for (const std::string& folder : folders_) {
    try {
      monitor_ = connect_local(SocketKind::seqpacket, folder + "/agent.sock", true);
      break;
    } catch (const OsError&) {
      tried += (tried.empty() ? "" : " or ") + folder;
    }
  }
  if (!monitor_.valid()) {
    if (!std::exchange(complained_, true))
      std::cerr << "sublet-agent: no load monitor answers in " << tried
                << "; it is tried again until one does\n";
    lost(now);
    return false;
  }
  complained_ = false;
  connected_at_ = now;
  send(greeting_, now);
  return monitor_.valid();
}

bool MonitorLink::read(int64_t now) {
  sublet_frame frame;
  const ssize_t got = recv(monitor_.get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got != static_cast<ssize_t>(sizeof frame) || frame.magic != SUBLET_FRAME_MAGIC) {
    lost(now);
    return false;
  }
  if (frame.kind != SUBLET_FRAME_PING) return false;
  ping_ = frame.sequence;
  return true;
}

void MonitorLink::say_here(bool goes_on, int64_t now) {
  sublet_frame frame = frame_of(SUBLET_FRAME_HERE);
  frame.state = goes_on ? 1 : 0;
  frame.instant = now;
  send(frame, now);
}

void MonitorLink::say_full_screen(bool is, int64_t now) {
  sublet_frame frame = frame_of(SUBLET_FRAME_FULL_SCREEN);
  frame.state = is ? 1 : 0;
  send(frame, now);
}

void MonitorLink::answer(int64_t now) {
  sublet_frame frame = frame_of(SUBLET_FRAME_ACK);
  frame.sequence = ping_;
  send(frame, now);
}

void MonitorLink::send(sublet_frame frame, int64_t now) {
  if (!monitor_.valid()) return;
  if (::send(monitor_.get(), &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) lost(now);
}

void MonitorLink::lost(int64_t now) {
  const bool accepted = monitor_.valid() && now - connected_at_ >= kAccepted;
  monitor_.reset();
  if (accepted) retry_after_ = kFirstRetry;
  retry_at_ = now + retry_after_;
  retry_after_ = std::min(2 * retry_after_, kLastRetry);
}

}  // namespace sublet::agent
