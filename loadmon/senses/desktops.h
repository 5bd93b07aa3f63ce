// What the agents of desktop sessions see (sublet-agent): keys, pointers and touches that X11
// or Wayland show to nobody else. An agent may only say that its owner is here, never "away",
// so a liar gains nothing, and anybody but a job may run one.
//
// An agent is live from its first frame until it hangs up, says too much, or does not answer a
// ping, which its desktop must answer too. Visitors that are too many to be heard count as
// input: an owner may be among them, whom a job keeps out. One thread.
#ifndef SUBLET_LOADMON_SENSES_DESKTOPS_H_
#define SUBLET_LOADMON_SENSES_DESKTOPS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "loadmon/senses/sense.h"
#include "loadmon/senses/shown_sessions.h"
#include "loadmon/visitor.h"
#include "protocol/frame.h"

namespace sublet::loadmon {

// An allowance of events that grows with time up to a burst.
class Allowance {
 public:
  Allowance(double burst, double per_second)
      : burst_(burst), per_second_(per_second), left_(burst) {}
  // `now`: ns, never earlier than in the last call. False: nothing is left.
  bool any(int64_t now);
  bool take(int64_t now);

 private:
  double burst_, per_second_, left_;
  int64_t at_ = 0;
};

class Desktops : public Sense {
 public:
  static constexpr int64_t kPingEvery = 10'000'000'000;
  static constexpr int64_t kAnswerWithin = 2'000'000'000;
  // An account whose agent has said too much has to stay away for this long.
  static constexpr int64_t kBannedFor = 60'000'000'000;
  static constexpr size_t kMostAgents = 64;
  static constexpr size_t kMostOfAUser = 8;

  // Listens on FOLDER/agent.sock. `root`: "" or, in tests, a folder that contains proc/. Throws
  // OsError if it cannot listen.
  Desktops(const std::string& folder, const std::string& root, JobsHere jobs);

  std::string name() const override { return "desktops"; }
  // Pings are sent, and their lack of an answer is noticed, with the samples: they need no
  // wake-up of their own.
  bool sample(int64_t now, const JobsEffect& jobs, protocol::PresenceSample* sample) override;
  int handle() const override { return events_.get(); }
  bool notice(int64_t now, protocol::PresenceSample* sample) override;

  // The desktops whose input is seen.
  std::vector<WatchedDesktop> live() const;

 private:
  struct Agent {
    UniqueFd fd;
    Visitor who;
    bool known = false;  // it has said what it watches
    WatchedDesktop watched = {};
    int64_t goes_on_until = 0;  // its input, unless it says otherwise before
    Allowance frames;
    int64_t asked_at = 0;  // when it connected or was last pinged
    uint32_t ping = 0;     // sequence; 0: the last one has been answered
  };
  using Place = std::map<int, Agent>::iterator;

  void fill(int64_t now, protocol::PresenceSample* sample);
  void watch(int fd);
  void listen_again(int64_t now);
  void accept_all(int64_t now);
  void admit(UniqueFd fd, int64_t now);
  bool has_room_for(uid_t uid, int64_t now);
  void hear_all(int64_t now);
  void read(Place agent, int64_t now);
  void seen(int64_t now, const protocol::Place& place);
  // Why this agent must go; "": it may stay.
  std::string hear(Agent& agent, const sublet_frame& frame, int64_t now);
  void greet(Agent& agent, const sublet_frame& frame, int64_t now);
  void ping_all(int64_t now);
  // `why`, if not empty, is logged.
  void dismiss(Place agent, const std::string& why, int64_t now);

  const std::string root_;
  const JobsHere jobs_;
  UniqueFd events_;  // epoll: the listener and the agents
  UniqueFd listener_;
  bool listening_ = false;  // the listener is in events_
  Allowance visits_;
  Allowance lines_;                  // of the log
  std::map<int, Agent> agents_;      // by descriptor
  std::map<uid_t, int64_t> banned_;  // until when
  uint32_t pings_ = 0;
  int64_t seen_ = 0;  // the last input, CLOCK_BOOTTIME, ns; 0: none yet
  protocol::Place seen_in_;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_SENSES_DESKTOPS_H_
