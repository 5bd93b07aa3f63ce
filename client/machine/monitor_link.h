// The client's connection to the load monitor: connects, starts a monitor if none
// answers (repeatedly, with a back-off), reads its frames, and reports at once when the
// connection is lost or silent. Reactor thread; the monitor is started on a worker
// thread that never waits for the server.
#ifndef SUBLET_CLIENT_MACHINE_MONITOR_LINK_H_
#define SUBLET_CLIENT_MACHINE_MONITOR_LINK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "client/attempts/owner_guard.h"
#include "client/loop.h"
#include "client/machine/monitor_start.h"
#include "client/workers.h"
#include "protocol/frame.h"

namespace sublet::client {

struct MonitorSettings {
  std::string socket;
  std::vector<std::string> command;  // argv of sublet-loadmon
};

class MonitorLink {
 public:
  // presence: called for each PRESENCE frame. cause: for each CAUSE. lost: called if there is no
  // monitor to rely on, also if the first one does not answer within five seconds. child: called
  // with the pid of a monitor started here.
  MonitorLink(Loop& loop, Workers& local, const MonitorSettings& settings,
              std::function<void(const sublet_frame&)> presence,
              std::function<void(const sublet_frame&)> cause, std::function<void()> lost,
              std::function<void(pid_t)> child);
  ~MonitorLink();

  void start(int64_t now);
  void tick(int64_t now);
  // A shepherd received nothing from the monitor and ended its job. The monitor is asked for
  // its state, and replaced if it does not answer within SUBLET_MONITOR_SILENCE_NS, or after
  // three such reports if it sent nothing here meanwhile but answers.
  void accuse(int64_t now);
  // `since`: from when on the monitor must send at least every SUBLET_MONITOR_BEAT_NS;
  // kNever: it need not.
  int64_t next_due(int64_t since) const;
  // Calls lost() if the monitor has been silent for too long, after reading frames that
  // may have queued up while this process was stopped.
  void check_silence(int64_t since, int64_t now);

 private:
  void connect(int64_t now);
  int64_t silent_at(int64_t since) const;
  void read();
  void lose(const char* why);
  void replace(const char* why, int64_t now);

  Loop& loop_;
  Workers& local_;
  const MonitorSettings settings_;
  MonitorStart start_;
  const std::function<void(const sublet_frame&)> presence_, cause_;
  const std::function<void()> lost_;
  const std::function<void(pid_t)> child_;
  UniqueFd socket_;
  UniqueFd peer_;  // the monitor's pidfd
  int64_t heard_ns_ = 0;
  int64_t silent_from_ns_ = 0;  // silence counts from here on
  int64_t connect_due_ns_ = 0;
  int64_t spawn_due_ns_ = 0;  // earliest time to start a monitor
  int64_t pause_ms_ = 0;      // 0: the last monitor started has answered
  int accusations_ = 0;
  int64_t doubted_ns_ = kNever;  // since when it owes an answer after an accusation
  int64_t give_up_ns_ = 0;       // deadline for the first monitor; 0: it has come or has passed
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_MONITOR_LINK_H_
