#include "loadmon/agent/agent.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/os_error.h"

namespace sublet::agent {
namespace {

constexpr int64_t kMs = 1'000'000;

int64_t boot_now() { return system_clock().boot_ns(); }

}  // namespace

Agent::Agent(const std::vector<std::string>& folders)
    : events_(epoll_create1(EPOLL_CLOEXEC)), reports_(boot_now()) {
  if (!events_.valid()) throw OsError(errno, "watch", "the desktop");
  const auto report_if_due = [this](bool (Reports::*what)(int64_t)) {
    const int64_t now = boot_now();
    report_if((reports_.*what)(now), now);
  };
  desktop_ = open_desktop({.active = [=] { report_if_due(&Reports::active); },
                           .quiet = [=] { report_if_due(&Reports::quiet); },
                           .answered = [this] { monitor_->answer(boot_now()); },
                           .full_screen =
                               [this](bool is) {
                                 const int64_t now = boot_now();
                                 report_full_screen_if(full_screen_.changed(is, now), now);
                               }});
  monitor_ = std::make_unique<MonitorLink>(folders, *desktop_);
  watch(desktop_->handle());
}

void Agent::watch(int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    throw OsError(errno, "watch", "the desktop");
}

void Agent::report_if(bool wanted, int64_t now) {
  if (wanted && monitor_) monitor_->say_here(reports_.goes_on(), now);
}

void Agent::report_full_screen_if(bool wanted, int64_t now) {
  if (wanted && monitor_) monitor_->say_full_screen(full_screen_.is(), now);
}

void Agent::connect(int64_t now) {
  if (!monitor_->connect(now)) return;
  watch(monitor_->handle());
  report_if(reports_.connected(now), now);
  report_full_screen_if(full_screen_.connected(now), now);
}

void Agent::run() {
  for (;;) {
    desktop_->dispatch();
    const int64_t now = boot_now();
    if (now >= monitor_->due()) connect(now);
    report_if(reports_.timer(now), now);
    report_full_screen_if(full_screen_.timer(now), now);
    epoll_event ready[2];
    const int count = epoll_wait(events_.get(), ready, 2, patience(now));
    for (int i = 0; i < count; ++i) {
      if (ready[i].data.fd == monitor_->handle() && monitor_->read(boot_now())) desktop_->probe();
    }
  }
}

int Agent::patience(int64_t now) const {
  const int64_t due = std::min({reports_.due(), full_screen_.due(), monitor_->due()});
  if (due == Reports::kNever) return -1;
  return static_cast<int>(std::max<int64_t>(0, (due - now + kMs - 1) / kMs));
}

}  // namespace sublet::agent
