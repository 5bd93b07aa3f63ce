// A thread that watches descriptors and runs work posted to it. All functions except
// post() and stop() may be called only on that thread, that is by the hooks and posted
// work; add() also before start().
#ifndef SUBLET_BASE_EPOLL_THREAD_H_
#define SUBLET_BASE_EPOLL_THREAD_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace sublet {

class EpollThread {
 public:
  // Throws OsError: no descriptors.
  EpollThread();
  ~EpollThread();
  EpollThread(const EpollThread&) = delete;
  EpollThread& operator=(const EpollThread&) = delete;

  struct Hooks {
    // Events of the descriptor that was added with this number.
    std::function<void(uint64_t number, uint32_t events)> ready;
    // Called after each round of events; returns the milliseconds until the next call at
    // the latest, -1: after the next event.
    std::function<int()> round;
  };
  void start(Hooks hooks);
  // Any thread, before or after start; false after stop(). Runs in order.
  bool post(std::function<void()> work);
  // Ends the thread and drops pending work. A second call has no effect.
  void stop();

  // events: EPOLLIN and so on, level-triggered. Throws OsError.
  void add(int descriptor, uint64_t number, uint32_t events);
  void change(int descriptor, uint64_t number, uint32_t events);
  void remove(int descriptor);

 private:
  void run();
  void run_posted();

  UniqueFd epoll_;
  UniqueFd wake_;
  Hooks hooks_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sublet

#endif  // SUBLET_BASE_EPOLL_THREAD_H_
