#include "base/service_notify.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace sublet {
namespace {

// Retry interval after the manager's queue was full.
constexpr int64_t kAgainNs = 500'000'000;

std::string take(const char* name) {
  const char* value = getenv(name);
  std::string text = value ? value : "";
  unsetenv(name);
  return text;
}

int64_t number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

}  // namespace

ServiceNotify ServiceNotify::from_environment() {
  const std::string socket = take("NOTIFY_SOCKET");
  const int64_t watchdog_us = number(take("WATCHDOG_USEC"));
  const std::string pid = take("WATCHDOG_PID");
  const bool for_us = pid.empty() || number(pid) == getpid();
  return ServiceNotify(socket, for_us && watchdog_us > 0 ? watchdog_us : 0);
}

ServiceNotify::ServiceNotify(const std::string& socket, int64_t watchdog_us)
    : period_ns_(watchdog_us * 1000 / 2) {
  if (socket.size() < 2 || socket.size() >= sizeof address_.sun_path) return;
  if (socket[0] != '/' && socket[0] != '@') return;
  address_.sun_family = AF_UNIX;
  memcpy(address_.sun_path, socket.data(), socket.size());
  if (socket[0] == '@') address_.sun_path[0] = 0;
  length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void ServiceNotify::ready(int64_t now_ns) {
  if (ready_ || !socket_.valid()) return;
  ready_ = true;
  tell(now_ns);
}

void ServiceNotify::alive(int64_t now_ns) {
  if (now_ns >= due_ns_) tell(now_ns);
}

void ServiceNotify::tell(int64_t now_ns) {
  const bool delivered = send(ready_told_ ? "WATCHDOG=1" : "READY=1\nWATCHDOG=1");
  ready_told_ |= delivered;
  if (!delivered) {
    due_ns_ = now_ns + (period_ns_ > 0 ? std::min(kAgainNs, period_ns_) : kAgainNs);
  } else {
    due_ns_ = period_ns_ > 0 ? now_ns + period_ns_ : kNever;
  }
}

bool ServiceNotify::send(const char* message) const {
  const auto* to = reinterpret_cast<const sockaddr*>(&address_);
  return sendto(socket_.get(), message, strlen(message), MSG_DONTWAIT | MSG_NOSIGNAL, to,
                length_) >= 0;
}

}  // namespace sublet
