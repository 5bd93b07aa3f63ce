// What a daemon tells the manager that started it (systemd's sd_notify protocol,
// spoken without its library): that it is ready and that its loop goes round. One
// datagram each, never waited for: what cannot be said at once is said later.
// Without a manager nothing is said. One thread.
#ifndef SUBLET_BASE_SERVICE_NOTIFY_H_
#define SUBLET_BASE_SERVICE_NOTIFY_H_

#include <sys/un.h>

#include <cstdint>
#include <limits>
#include <string>

#include "base/unique_fd.h"

namespace sublet {

class ServiceNotify {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  // Takes NOTIFY_SOCKET (a path, or a name after '@'), WATCHDOG_USEC and
  // WATCHDOG_PID out of the environment, so that no child speaks in this
  // process's name. To be called before other threads are there. An address that
  // cannot be used counts as none.
  static ServiceNotify from_environment();
  // socket: as in NOTIFY_SOCKET; empty: says nothing. The manager expects a sign
  // of life every `watchdog_us`; 0: none.
  ServiceNotify(const std::string& socket, int64_t watchdog_us);

  // All instants in nanoseconds, of any clock that only goes forward.
  // The first call counts: from now on the daemon does its work.
  void ready(int64_t now_ns);
  // The loop that calls this goes round. Says so when it is due, twice in each
  // period that the manager grants, and makes up for a ready() that was not heard.
  void alive(int64_t now_ns);
  // When alive() has something to say; kNever: not before ready(), or never.
  int64_t next_due() const { return due_ns_; }

 private:
  void tell(int64_t now_ns);
  bool send(const char* message) const;

  UniqueFd socket_;
  sockaddr_un address_ = {};
  socklen_t length_ = 0;
  int64_t period_ns_ = 0;
  int64_t due_ns_ = kNever;
  bool ready_ = false;
  bool ready_told_ = false;
};

}  // namespace sublet

#endif  // SUBLET_BASE_SERVICE_NOTIFY_H_
