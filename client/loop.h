// The client's main loop: ACE's reactor for descriptors, one timer on
// CLOCK_BOOTTIME (ACE's own timers follow the wall clock, which may be set
// back while an owner waits), SIGTERM, SIGINT and SIGCHLD through a descriptor,
// and an inbox through which other threads hand work to this one.
//
// Made, run and destroyed by one thread, the reactor's; only post() and stop()
// are for everybody. post() waits for a mutex that is held for a push or a swap
// of the inbox alone, never over disk, network or a callback.
#ifndef SUBLET_CLIENT_LOOP_H_
#define SUBLET_CLIENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>

namespace sublet::client {

class Loop {
 public:
  // Blocks SIGTERM, SIGINT and SIGCHLD in the calling thread: to be made before
  // other threads are, so that they inherit it. Throws OsError.
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Calls readable() whenever fd can be read or has been closed by its peer.
  // unwatch() may be called from within it; the descriptor stays the caller's.
  void watch(int fd, std::function<void()> readable);
  void unwatch(int fd);

  // Calls tick() at `due_ns` (CLOCK_BOOTTIME); INT64_MAX: never. Only the last
  // call counts; a system call and no allocation.
  void on_tick(std::function<void()> tick);
  void wake_at(int64_t due_ns);

  // Called after each round of events, before the loop waits again.
  void on_round(std::function<void()> round);

  void on_signal(std::function<void(int signal)> handler);

  void post(std::function<void()> task);  // any thread
  void stop();                            // any thread
  // Until stop().
  void run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LOOP_H_
