// A thread that watches descriptors and does what is posted to it. Everything
// but post() and stop() is for that thread itself, that is for the functions it
// calls; add() also before start().
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
    // What became of a descriptor added under this number.
    std::function<void(uint64_t number, uint32_t events)> ready;
    // After each round of events; returns in how many milliseconds to call again
    // at the latest, -1: when something happens.
    std::function<int()> round;
  };
  void start(Hooks hooks);
  // Any thread, before or after start; false after stop(). Runs in order.
  bool post(std::function<void()> work);
  // Ends the thread; what was posted and not done is dropped. Twice is once.
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
