#include "transport/guard/ready_set.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/os_error.h"

namespace sublet {
namespace {

constexpr uint64_t kWakeNumber = 0;
constexpr size_t kEventsAtATime = 64;

}  // namespace

ReadySet::ReadySet()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeNumber;
  if (!epoll_.valid() || !wake_.valid() ||
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
    throw OsError(errno, "open", "an epoll descriptor");
}

ReadySet::~ReadySet() { stop(); }

void ReadySet::start(Ready ready) {
  if (thread_.joinable()) return;
  stopping_ = false;
  ready_ = std::move(ready);
  // Signals are handled by the program's other threads.
  sigset_t all, before;
  sigfillset(&all);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, own);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ReadySet::stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
}

void ReadySet::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto woken = ::write(wake_.get(), &one, sizeof one);
}

bool ReadySet::watch(Member& member, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;
  event.data.u64 = member.number_;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) == 0 ||
         ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void ReadySet::wait(Member& member, int descriptor, bool at_once) {
  std::lock_guard lock(mutex_);
  if (member.number_ == 0) {
    member.number_ = ++last_number_;
    members_[member.number_] = {&member, descriptor};
  }
  member.waiting_ = true;
  if (member.ended_) ++ended_waiting_;
  if (!at_once && watch(member, descriptor)) return;
  at_once_.push_back(member.number_);
  wake();
}

void ReadySet::no_longer_waits(Member& member) {
  if (member.waiting_ && member.ended_ && --ended_waiting_ == 0) changed_.notify_all();
  member.waiting_ = false;
}

void ReadySet::forget(Member& member) {
  std::unique_lock lock(mutex_);
  const auto place = members_.find(member.number_);
  if (place != members_.end()) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, place->second.descriptor, nullptr);
    members_.erase(place);
  }
  no_longer_waits(member);
  member.number_ = 0;
  changed_.wait(lock, [&] { return announced_ != &member; });
}

void ReadySet::ended(Member& member) {
  std::lock_guard lock(mutex_);
  if (member.ended_) return;
  member.ended_ = true;
  if (member.waiting_) ++ended_waiting_;
}

bool ReadySet::settle(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return ended_waiting_ == 0; });
}

size_t ReadySet::size() const {
  std::lock_guard lock(mutex_);
  return members_.size();
}

void ReadySet::announce(uint64_t number) {
  {
    std::lock_guard lock(mutex_);
    const auto place = members_.find(number);
    // It may have been forgotten since the kernel reported it.
    if (stopping_ || place == members_.end() || !place->second.member->waiting_) return;
    announced_ = place->second.member;
    no_longer_waits(*announced_);
  }
  ready_(*announced_);
  std::lock_guard lock(mutex_);
  announced_ = nullptr;
  changed_.notify_all();
}

void ReadySet::run() {
  std::array<epoll_event, kEventsAtATime> events;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    std::vector<uint64_t> numbers;
    for (int i = 0; i < count; ++i) {
      const uint64_t number = events[static_cast<size_t>(i)].data.u64;
      if (number != kWakeNumber) {
        numbers.push_back(number);
        continue;
      }
      // Before at_once_ is read, so that no later wake-up is lost.
      uint64_t many = 0;
      [[maybe_unused]] const auto got = ::read(wake_.get(), &many, sizeof many);
    }
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
      numbers.insert(numbers.end(), at_once_.begin(), at_once_.end());
      at_once_.clear();
    }
    for (const uint64_t number : numbers) announce(number);
  }
}

}  // namespace sublet
