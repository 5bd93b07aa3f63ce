#include "client/loop.h"

#include <ace/Dev_Poll_Reactor.h>
#include <ace/Event_Handler.h>
#include <ace/Reactor.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include <atomic>
#include <csignal>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "base/os_error.h"
#include "base/unique_fd.h"

namespace sublet::client {
namespace {

constexpr int64_t kNeverDue = std::numeric_limits<int64_t>::max();

class Watch : public ACE_Event_Handler {
 public:
  Watch(int fd, std::function<void()> readable) : fd_(fd), readable_(std::move(readable)) {}
  ACE_HANDLE get_handle() const override { return fd_; }
  int handle_input(ACE_HANDLE) override {
    readable_();
    return 0;
  }

 private:
  int fd_;
  std::function<void()> readable_;
};

UniqueFd checked(int fd, const char* what) {
  if (fd < 0) throw OsError(errno, "make", what);
  return UniqueFd(fd);
}

UniqueFd signal_descriptor() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return checked(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "a signal descriptor");
}

}  // namespace

// Other threads use the inbox. The reactor's own queue for them would take 32 kB that all
// workstations have and none uses.
constexpr int kNoNotifications = 1;

struct Loop::Parts {
  Parts()
      : signals(signal_descriptor()),
        timer(checked(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "a timer")),
        inbox_event(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an event descriptor")),
        reactor(new ACE_Dev_Poll_Reactor(4096, true, nullptr, nullptr, kNoNotifications), true) {}

  void drain_inbox() {
    uint64_t count = 0;
    if (read(inbox_event.get(), &count, sizeof count) < 0) {
      // Drained with what was posted before.
    }
    std::vector<std::function<void()>> tasks;
    {
      std::lock_guard lock(mutex);
      tasks.swap(inbox);
    }
    for (auto& task : tasks) task();
  }

  void read_signals() {
    signalfd_siginfo info;
    while (read(signals.get(), &info, sizeof info) == sizeof info)
      if (on_signal) on_signal(static_cast<int>(info.ssi_signo));
  }

  void read_timer() {
    uint64_t count = 0;
    if (read(timer.get(), &count, sizeof count) <= 0) return;
    due_ns = kNeverDue;
    if (on_tick) on_tick();
  }

  UniqueFd signals;
  UniqueFd timer;
  UniqueFd inbox_event;
  ACE_Reactor reactor;
  std::map<int, std::unique_ptr<Watch>> watches;
  // Unwatched, perhaps by their own callback: destroyed after this round.
  std::vector<std::unique_ptr<Watch>> retired;
  int64_t due_ns = kNeverDue;  // for which the timer is set
  std::function<void()> on_tick;
  std::function<void()> on_round;
  std::function<void(int)> on_signal;
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::vector<std::function<void()>> inbox;
};

Loop::Loop() : parts_(std::make_unique<Parts>()) {
  Parts* parts = parts_.get();
  watch(parts->signals.get(), [parts] { parts->read_signals(); });
  watch(parts->timer.get(), [parts] { parts->read_timer(); });
  watch(parts->inbox_event.get(), [parts] { parts->drain_inbox(); });
}

Loop::~Loop() {
  while (!parts_->watches.empty()) unwatch(parts_->watches.begin()->first);
  parts_->reactor.close();
}

void Loop::watch(int fd, std::function<void()> readable) {
  auto handler = std::make_unique<Watch>(fd, std::move(readable));
  if (parts_->reactor.register_handler(handler.get(), ACE_Event_Handler::READ_MASK) != 0)
    throw OsError(errno, "watch", "a descriptor");
  parts_->watches[fd] = std::move(handler);
}

void Loop::unwatch(int fd) {
  auto found = parts_->watches.find(fd);
  if (found == parts_->watches.end()) return;
  parts_->reactor.remove_handler(found->second.get(),
                                 ACE_Event_Handler::READ_MASK | ACE_Event_Handler::DONT_CALL);
  parts_->retired.push_back(std::move(found->second));
  parts_->watches.erase(found);
}

void Loop::on_tick(std::function<void()> tick) { parts_->on_tick = std::move(tick); }

void Loop::wake_at(int64_t due_ns) {
  if (due_ns == parts_->due_ns) return;
  parts_->due_ns = due_ns;
  itimerspec at = {};
  if (due_ns != kNeverDue) {
    if (due_ns < 1) due_ns = 1;  // 0 would disarm
    at.it_value = {due_ns / 1'000'000'000, due_ns % 1'000'000'000};
  }
  timerfd_settime(parts_->timer.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

void Loop::on_round(std::function<void()> round) { parts_->on_round = std::move(round); }

void Loop::on_signal(std::function<void(int)> handler) { parts_->on_signal = std::move(handler); }

void Loop::post(std::function<void()> task) {
  bool first = false;
  {
    std::lock_guard lock(parts_->mutex);
    first = parts_->inbox.empty();
    parts_->inbox.push_back(std::move(task));
  }
  uint64_t one = 1;
  if (first && write(parts_->inbox_event.get(), &one, sizeof one) < 0) {
    // The counter is full: the reactor will wake up anyway.
  }
}

void Loop::stop() {
  parts_->stopping = true;
  post([] {});
}

void Loop::run() {
  while (!parts_->stopping) {
    parts_->reactor.handle_events();
    parts_->retired.clear();
    if (parts_->on_round) parts_->on_round();
  }
}

}  // namespace sublet::client
