#include "cli/interrupts.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cli/views/output.h"

namespace sublet::cli {

namespace {

// Never destroyed: the thread below uses them until the process ends.
std::mutex& actions_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::vector<std::function<void()>>& actions() {
  static auto* all = new std::vector<std::function<void()>>;
  return *all;
}

void wait_for_signal(sigset_t signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  // Locked until the process ends: the command must not undo an action now.
  actions_mutex().lock();
  end_progress();
  for (auto action = actions().rbegin(); action != actions().rend(); ++action) {
    try {
      (*action)();
    } catch (const std::exception&) {
      // The process is ending: nothing can handle the failure.
    }
  }
  _exit(128 + signal);
}

}  // namespace

void watch_interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread(wait_for_signal, signals).detach();
}

WhenInterrupted::WhenInterrupted(std::function<void()> action) {
  std::lock_guard lock(actions_mutex());
  actions().push_back(std::move(action));
}

WhenInterrupted::~WhenInterrupted() {
  std::lock_guard lock(actions_mutex());
  actions().pop_back();
}

}  // namespace sublet::cli
