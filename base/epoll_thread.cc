#include "base/epoll_thread.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>

#include "base/os_error.h"

namespace sublet {
namespace {

constexpr uint64_t kWakeNumber = ~uint64_t{0};

// Signals are handled by the program's other threads; SIGPIPE by none.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, own);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

EpollThread::EpollThread()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_.valid() || !wake_.valid()) throw OsError(errno, "open", "an epoll descriptor");
  add(wake_.get(), kWakeNumber, EPOLLIN);
}

EpollThread::~EpollThread() { stop(); }

void EpollThread::start(Hooks hooks) {
  hooks_ = std::move(hooks);
  thread_ = std::thread([this] { run(); });
}

bool EpollThread::post(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    posted_.push_back(std::move(work));
  }
  const uint64_t one = 1;
  return ::write(wake_.get(), &one, sizeof one) == sizeof one;
}

void EpollThread::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  const uint64_t one = 1;
  [[maybe_unused]] const auto woken = ::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  posted_.clear();
}

void EpollThread::add(int descriptor, uint64_t number, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
    throw OsError(errno, "watch", "a descriptor");
}

void EpollThread::change(int descriptor, uint64_t number, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) != 0)
    throw OsError(errno, "watch", "a descriptor");
}

void EpollThread::remove(int descriptor) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void EpollThread::run_posted() {
  std::vector<std::function<void()>> work;
  {
    std::lock_guard lock(mutex_);
    work.swap(posted_);
  }
  for (const auto& one : work) one();
}

void EpollThread::run() {
  block_signals();
  std::array<epoll_event, 64> events;
  int wait_ms = 0;
  for (;;) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms);
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 != kWakeNumber) {
        hooks_.ready(event.data.u64, event.events);
        continue;
      }
      uint64_t many = 0;
      [[maybe_unused]] const auto got = ::read(wake_.get(), &many, sizeof many);
      run_posted();
    }
    wait_ms = hooks_.round();
  }
}

}  // namespace sublet
