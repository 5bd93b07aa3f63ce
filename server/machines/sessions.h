// The registrations of workstations in this server process. A session's key is
// a secret of 16 random octets; it is valid only on connections of the caller
// that joined: the uid, or the remote member.
//
// Threads: any.
#ifndef SUBLET_SERVER_MACHINES_SESSIONS_H_
#define SUBLET_SERVER_MACHINES_SESSIONS_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scheduling/types.h"
#include "server/access.h"

namespace sublet::server {

// The last state that a workstation reported; idl/machine_allocator.idl.
struct ReportedState {
  bool away = false;
  uint32_t reason = 0;
  double owner_cpu = 0;
  int64_t input_idle_ms = -1;
  uint32_t slots_free = 0;
  uint64_t memory_free = 0;
  uint64_t disk_free = 0;
  double speed = 0;  // 0: it did not say
  double load = 0;
  uint32_t ahead = 0;  // orders that it takes ahead of time
};

// The last reported status of an attempt: shown while it runs, never stored.
struct LiveStatus {
  int64_t cpu_ms = 0;
  uint64_t memory = 0;
  uint64_t disk = 0;  // 0: not known
  int32_t progress_ppm = -1;
  uint64_t generation = 0;
  int64_t at_risk_ms = -1;  // CPU time that no checkpoint here holds; -1: not known
  std::string message;      // what the program says of itself, UTF-8
};

struct SessionInfo {
  std::string key;
  scheduling::MachineId machine = 0;
  uint64_t uid = 0;  // Caller::uid
  std::string name;
  std::string holder;   // "pid 1234 of root", named when a second client is refused
  std::string version;  // of the client
  // The client takes orders ahead of time, and says which attempts wait for a slot.
  bool serves_ahead = false;
  bool attached = false;
  bool renewed = false;  // the first renewal, the adoption, is done
};

class Sessions {
 public:
  // Creates a session and ends the machine's previous one, if any.
  SessionInfo open(scheduling::MachineId machine, uint64_t uid, const std::string& name,
                   const std::string& holder, const std::string& version = "",
                   bool serves_ahead = false);
  // Throws Refusal kNotFound "session.unknown", also for another caller's key, so
  // that guessing reveals nothing.
  SessionInfo find(const std::string& key, const Caller& caller) const;
  // The session that this caller opened, if any.
  std::optional<SessionInfo> of_caller(uint64_t uid) const;
  std::optional<SessionInfo> of_machine(scheduling::MachineId machine) const;
  void set_attached(const std::string& key);
  // Returns true for the first call only. Throws Refusal like find().
  bool take_first_renewal(const std::string& key);
  // False: it has ended already, perhaps because its machine has another one.
  bool close(const std::string& key);

  void set_report(scheduling::MachineId machine, const ReportedState& state);
  std::optional<ReportedState> report(scheduling::MachineId machine) const;
  void set_status(scheduling::AttemptKey key, const LiveStatus& status);
  std::optional<LiveStatus> status(scheduling::AttemptKey key) const;
  int32_t progress_ppm(scheduling::AttemptKey key) const;  // -1: not known
  void forget_status(scheduling::AttemptKey key);
  // Removes the statuses of attempts for which `wanted` returns false.
  void keep_statuses(const std::function<bool(scheduling::AttemptKey)>& wanted);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, SessionInfo> by_key_;
  std::map<scheduling::MachineId, std::string> key_of_;
  std::map<scheduling::MachineId, ReportedState> reports_;
  std::map<scheduling::AttemptKey, LiveStatus> statuses_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MACHINES_SESSIONS_H_
