// Notifies the service manager (systemd's sd_notify protocol, without its library) that
// the daemon is ready and that its main loop is running. Each notification is one
// datagram, sent without blocking and retried later if necessary. Without a manager
// nothing is sent. Not thread-safe.
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

  // Reads NOTIFY_SOCKET (a path, or a name after '@'), WATCHDOG_USEC and WATCHDOG_PID
  // and removes them from the environment, so that no child sends notifications for
  // this process. To be called before other threads are started. An unusable address
  // is ignored.
  static ServiceNotify from_environment();
  // socket: as in NOTIFY_SOCKET; empty: sends nothing. The manager expects a
  // notification every `watchdog_us`; 0: none.
  ServiceNotify(const std::string& socket, int64_t watchdog_us);

  // All instants are nanoseconds of any monotonic clock.
  // The daemon is ready. Only the first call has an effect.
  void ready(int64_t now_ns);
  // To be called by the main loop. Sends a notification when due, twice in each
  // watchdog period, and repeats a ready() that could not be sent.
  void alive(int64_t now_ns);
  // When alive() is due; kNever: not before ready(), or never.
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
