// The Machine Allocator and the Execution Server without the ORB: workstations
// join, report their state and their attempts, and leave.
//
// Threads: any.
#ifndef SUBLET_SERVER_MACHINES_SERVICE_H_
#define SUBLET_SERVER_MACHINES_SERVICE_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/access.h"
#include "server/commit/pipeline.h"
#include "server/machines/dispatcher.h"
#include "server/machines/sessions.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

struct MachineFacts {
  std::string name;
  std::string os;
  std::string architecture;
  uint32_t cores = 1;
  uint32_t slots = 1;
  uint64_t memory = 0;
  uint64_t disk = 0;
  std::string version;                 // of the client
  std::string holder;                  // "pid 1234", named when a second client is refused
  rules::NamedAmounts resources = {};  // that it offers besides
  bool serves_ahead = false;           // SessionInfo
};

struct Joined {
  SessionInfo session;
  Micros now = 0;  // the brain's time of the join
};

struct ReportedAttempt {
  scheduling::AttemptKey key;
  scheduling::AttemptState state = scheduling::AttemptState::kRunning;
  uint64_t delivered = 0;
  bool waits = false;  // for a slot; only of a client that serves_ahead
  LiveStatus status;
};

struct ReportedStart {
  scheduling::AttemptKey key;
  Micros ran = 0;  // for how long, when its machine said so
};

struct ReportedEnd {
  scheduling::AttemptEnded event;
  EndRow row;
  std::vector<uint64_t> outputs;
  bool memory_short = false;  // it left because the machine's memory ran short
};

using Verdicts = std::vector<std::pair<scheduling::AttemptKey, scheduling::Verdict>>;

struct Renewal {
  Verdicts verdicts;
  Micros now = 0;  // the brain's time of the renewal
  scheduling::MachineId machine = 0;
};

class MachineService {
 public:
  MachineService(Pipeline& pipeline, Archive& archive, Sessions& sessions, Access& access,
                 Dispatcher& dispatcher);

  // machine 0: a new one, or the one that already has this secret. Throws Refusal; "machine.live"
  // while another client holds the machine. Whether that client is alive is checked in the
  // background, so the caller should try again.
  Joined join(const Caller& caller, scheduling::MachineId machine, const std::string& secret,
              const MachineFacts& facts);
  void attach(const std::string& session, const Caller& caller,
              std::shared_ptr<Workstation> workstation);
  void report(const std::string& session, const Caller& caller, const ReportedState& state);
  void withdraw(const std::string& session, const Caller& caller);
  // The same for the session of this caller (Caller::uid), if there is one.
  void expel(uint64_t uid);

  // One verdict for each, in one commit.
  Verdicts started(const std::string& session, const Caller& caller,
                   const std::vector<ReportedStart>& starts);
  Renewal renew(const std::string& session, const Caller& caller, const ReportedState& state,
                const std::vector<ReportedAttempt>& attempts);
  Verdicts ended(const std::string& session, const Caller& caller,
                 const std::vector<ReportedEnd>& ends);

  // In order of id, after `after`.
  std::vector<scheduling::MachineView> list(scheduling::MachineId after, uint32_t limit);

 private:
  void check_facts(const MachineFacts& facts) const;
  void check_member(const Caller& caller, const MachineFacts& facts) const;
  void check_not_live(scheduling::MachineId machine);
  static void check_left_nothing(const scheduling::Pool& pool, scheduling::MachineId machine);
  using Names = std::set<std::string>;
  // The names of the outputs among the files that an end lists; std::nullopt: one of the
  // files has not been uploaded.
  std::optional<Names> outputs_here(const ReportedEnd& end);
  // Whether these include all required outputs.
  bool has_required(const ReportedEnd& end, const Names& outputs);
  // The output that meets its batch's stop condition, if any; "": none.
  std::string left_output(const ReportedEnd& end, const Names& outputs);
  // AttemptEnded::alike.
  scheduling::JobRange alike(const ReportedEnd& end);
  void check_secret(const Caller& caller, scheduling::MachineId machine, const std::string& secret);
  void end(const SessionInfo& info);

  Pipeline& pipeline_;
  Archive& archive_;
  Sessions& sessions_;
  Access& access_;
  Dispatcher& dispatcher_;

  std::mutex mutex_;
  // The last probe of the client that holds a machine, and its result.
  struct Probe {
    bool pending = false;
    bool alive = true;
  };
  std::map<std::string, Probe> probes_;  // by session key
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MACHINES_SERVICE_H_
