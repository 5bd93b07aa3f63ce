// The load monitor: takes samples, decides whether the owner is here, and notifies all
// listeners at once. One thread, one reactor, one timer; nothing here waits for a disk, a
// network or a lock.
#ifndef SUBLET_LOADMON_MONITOR_H_
#define SUBLET_LOADMON_MONITOR_H_

#include <ace/Dev_Poll_Reactor.h>
#include <ace/Event_Handler.h>
#include <ace/Reactor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "loadmon/attempts.h"
#include "loadmon/attempts_folder.h"
#include "loadmon/burden.h"
#include "loadmon/jobs_here.h"
#include "loadmon/jobs_meter.h"
#include "loadmon/listeners.h"
#include "loadmon/owner_watch.h"
#include "protocol/presence.h"

namespace sublet::loadmon {

struct MonitorOptions {
  std::string socket;    // monitor.sock
  std::string attempts;  // the client's attempts/; empty: none
  protocol::PresenceRule rule;
  int64_t sample_ms = 500;
  int64_t save_deadline_ms = 2000;  // for attempts that specify none
  int64_t alone_ms = -1;            // exits after this long without a connection; < 0: never
  size_t most_connections = 1024;
  double linger_slowdown = 0.1;  // see Burden
  std::string root;              // files of the kernel are read below it
  bool measures_jobs = true;     // the senses need the jobs' CPU use
};

// Calls a function when a descriptor is readable.
class Readable : public ACE_Event_Handler {
 public:
  Readable(int fd, std::function<void()> ready) : fd_(fd), ready_(std::move(ready)) {}
  ACE_HANDLE get_handle() const override { return fd_; }
  int handle_input(ACE_HANDLE) override {
    ready_();
    return 0;
  }

 private:
  int fd_;
  std::function<void()> ready_;
};

class Monitor {
 public:
  // What all senses see, on the monitor's thread.
  using Describe = std::function<std::vector<SenseLine>()>;

  // Listens on the socket, then makes the rules and the senses. Throws OsError, also if another
  // monitor has the socket. SIGTERM and SIGINT must be blocked in every thread: run() handles them.
  Monitor(const MonitorOptions& options,
          const std::function<Senses(const JobsHere&, const Describe&, OwnersRules&)>& make_senses,
          const std::function<std::unique_ptr<OwnersRules>(const JobsHere&)>& make_rules);
  ~Monitor();

  // Runs until a signal, or until no listener has been connected for too long. Returns the
  // exit status.
  int run();

 private:
  void watch(int fd, std::function<void()> ready);
  void accept_all();
  void step();
  JobsEffect meter_jobs(int64_t now);
  void notice(size_t sense);
  // Asks all senses, those with an event first.
  void take_sample();
  // Tells everybody that the verdict has changed.
  void changed();
  void shepherd_left(Attempt* attempt);
  void find_attempts(int64_t now);
  // Why the owner is taken for present, for the log.
  std::string cause(const sublet_frame& news) const;
  sublet_frame frame(const protocol::PresenceVerdict& verdict);
  sublet_frame cause_frame(const sublet_frame& news) const noexcept;
  std::vector<std::pair<uint64_t, uint32_t>> attempts_here() const;
  int64_t next_step(int64_t now) const;
  void set_timer(int64_t at);
  int64_t sample_period() const;
  int64_t beat_period() const;

  MonitorOptions options_;
  UniqueFd lock_;
  UniqueFd listener_;
  UniqueFd timer_;
  UniqueFd signals_;
  ACE_Reactor reactor_;
  std::vector<std::unique_ptr<Readable>> readables_;
  OwnerWatch watch_;
  Attempts attempts_;
  AttemptsFolder folder_;
  JobsMeter meter_;
  Burden burden_;
  Listeners listeners_;
  uint32_t sequence_ = 0;
  int64_t sampled_at_ = 0;
  int64_t reported_at_ = 0;
  int64_t alone_since_ = 0;  // when a connection was last made or lost
  int64_t timer_at_ = 0;
  bool stop_ = false;
  int exit_status_ = 0;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_MONITOR_H_
