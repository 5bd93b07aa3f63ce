// The client's main loop: ACE's reactor for descriptors, one timer on
// CLOCK_BOOTTIME (ACE's own timers use the wall clock, which may be set back
// while an owner waits), SIGTERM, SIGINT and SIGCHLD through a signalfd, and an
// inbox for tasks from other threads.
//
// Constructed, run and destroyed by one thread, the reactor's; only post() and
// stop() may be called from any thread. post() takes a mutex that is held only to
// push to the inbox or swap it, never during I/O or a callback.
#ifndef SUBLET_CLIENT_LOOP_H_
#define SUBLET_CLIENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>

namespace sublet::client {

class Loop {
 public:
  // Blocks SIGTERM, SIGINT and SIGCHLD in the calling thread: construct it before
  // starting other threads, which inherit the mask. Throws OsError.
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Calls readable() whenever fd can be read or its peer has closed it. unwatch()
  // may be called from within it. The caller keeps ownership of fd.
  void watch(int fd, std::function<void()> readable);
  void unwatch(int fd);

  // wake_at() arranges a call of tick() at `due_ns` (CLOCK_BOOTTIME; INT64_MAX:
  // never) and replaces the time set before. One system call, no allocation.
  void on_tick(std::function<void()> tick);
  void wake_at(int64_t due_ns);

  // Called after each round of events, before the loop waits again.
  void on_round(std::function<void()> round);

  void on_signal(std::function<void(int signal)> handler);

  void post(std::function<void()> task);  // any thread
  void stop();                            // any thread
  // Returns after stop().
  void run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LOOP_H_
