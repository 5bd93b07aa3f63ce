// The client's connection to the Load Monitor: connects, starts the monitor when
// none answers (repeatedly, with a back-off), reads its frames, and says
// so at once when the connection is lost or silent. The reactor's thread; starting the
// monitor is a task of a worker that never waits for the server.
#ifndef SUBLET_CLIENT_MACHINE_MONITOR_LINK_H_
#define SUBLET_CLIENT_MACHINE_MONITOR_LINK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "client/loop.h"
#include "client/workers.h"
#include "protocol/frame.h"

namespace sublet::client {

struct MonitorSettings {
  std::string socket;
  std::vector<std::string> command;  // argv of sublet-loadmon
};

class MonitorLink {
 public:
  // presence: a PRESENCE frame. lost: no monitor to trust; also called
  // when the first monitor does not come within five seconds.
  MonitorLink(Loop& loop, Workers& local, const MonitorSettings& settings,
              std::function<void(const sublet_frame&)> presence, std::function<void()> lost,
              std::function<void(pid_t)> child);
  ~MonitorLink();

  void start(int64_t now);
  void tick(int64_t now);
  // A shepherd heard nothing of the monitor and ended its job. After three such
  // words with nothing heard here either, the monitor is replaced.
  void accuse(int64_t now);
  int64_t next_due(bool tenants) const;
  // With tenants the monitor sends at least every SUBLET_MONITOR_BEAT_NS.
  // Calls lost() when it has been silent for too long, also on reading what this
  // process, stopped for a while, may have left unread. `since`: when the newest
  // of them came.
  void check_silence(bool tenants, int64_t since, int64_t now);

 private:
  void connect(int64_t now);
  bool silent(int64_t since, int64_t now) const;
  void read();
  void lose(const char* why);
  void spawn();
  void replace(const char* why, int64_t now);

  Loop& loop_;
  Workers& local_;
  const MonitorSettings settings_;
  const std::function<void(const sublet_frame&)> presence_;
  const std::function<void()> lost_;
  const std::function<void(pid_t)> child_;
  UniqueFd socket_;
  UniqueFd peer_;  // the monitor's pidfd
  int64_t heard_ns_ = 0;
  int64_t silent_from_ns_ = 0;  // when silence began to count
  int64_t connect_due_ns_ = 0;
  int64_t spawn_due_ns_ = 0;  // not earlier
  int64_t pause_ms_ = 0;
  int accusations_ = 0;
  int64_t give_up_ns_ = 0;  // the first monitor is awaited until then; 0: no more
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_MONITOR_LINK_H_
