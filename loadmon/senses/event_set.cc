#include "loadmon/senses/event_set.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>

#include "base/os_error.h"

namespace sublet::loadmon {
namespace {
bool put(int set, int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0;
}
}  // namespace

EventSet::EventSet() : outer_(epoll_create1(EPOLL_CLOEXEC)), inner_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!outer_.valid() || !inner_.valid() || !put(outer_.get(), inner_.get()))
    throw OsError(errno, "watch", "events");
}

bool EventSet::add(int fd) { return put(inner_.get(), fd); }

void EventSet::remove(int fd) { epoll_ctl(inner_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::vector<int> EventSet::ready() const {
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(inner_.get(), events.data(), static_cast<int>(events.size()), 0);
  std::vector<int> fds;
  for (int i = 0; i < count; ++i) fds.push_back(events[static_cast<size_t>(i)].data.fd);
  return fds;
}

void EventSet::rest(int64_t until) {
  if (rests_until_ == 0) epoll_ctl(outer_.get(), EPOLL_CTL_DEL, inner_.get(), nullptr);
  rests_until_ = until;
}

void EventSet::wake(int64_t now) {
  if (rests_until_ == 0 || now < rests_until_) return;
  if (put(outer_.get(), inner_.get())) rests_until_ = 0;
}

}  // namespace sublet::loadmon
