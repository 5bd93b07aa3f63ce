// The client's calls to its server, without CORBA types: the interface between the
// client's logic and the ORB. Every call may block up to the ORB's call timeout and
// must not be made from the reactor thread or an upcall. Implementations are
// thread-safe.
#ifndef SUBLET_CLIENT_LINK_SERVER_CALLS_H_
#define SUBLET_CLIENT_LINK_SERVER_CALLS_H_

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "attempt/folder.h"
#include "base/hash.h"
#include "base/random.h"
#include "client/link/content_calls.h"
#include "job/description.h"
#include "job/file_place.h"
#include "protocol/eviction.h"

namespace sublet::client {

// Why a call did not succeed. what() is one readable sentence.
class ServerError : public std::runtime_error {
 public:
  enum class Kind {
    kAway,         // no answer, or temporarily unavailable: repeat the same call later
    kSessionOver,  // join again
    kNotFound,
    kConflict,
    kRefused  // Invalid, NotPermitted, LimitExceeded: repeating it would not help
  };
  ServerError(Kind kind, std::string code, const std::string& text)
      : std::runtime_error(text), kind_(kind), code_(std::move(code)) {}
  Kind kind() const { return kind_; }
  const std::string& code() const { return code_; }  // "machine.live"; empty: an ORB error
  bool passing() const { return kind_ == Kind::kAway || kind_ == Kind::kSessionOver; }

 private:
  Kind kind_;
  std::string code_;
};

// This machine's identity in the pool: machine is 0 before the first join.
struct MachineIdentity {
  uint64_t machine = 0;
  std::string secret;
  bool operator==(const MachineIdentity&) const = default;
};

struct MachineFacts {
  std::string name;
  std::string os;
  std::string architecture;
  uint32_t cores = 1;
  uint32_t slots = 1;
  uint64_t memory = 0;            // bytes
  uint64_t disk = 0;              // free, bytes
  rules::NamedAmounts resources;  // that it offers besides
  std::vector<std::string> gpus;  // each by what programs call it: "0"; as many as "gpu"
  std::string version;
};

// Who is logged in where, for rules over users of the pool; in both directions
// idl/machine_allocator.idl, MachineReport.
struct LoginsReport {
  bool takes_part = false;         // by the owner's wish, and its monitor answers
  std::vector<std::string> asked;  // its rules count while these are logged in anywhere
  bool here_known = false;
  std::vector<std::string> here;  // of those that others asked for, those logged in here
};

struct LoginsAnswer {
  std::vector<std::string> wanted;        // whom others ask for
  std::map<std::string, bool> logged_in;  // of those that this machine asked for, as far as known
};

struct MachineState {
  bool away = false;
  uint32_t reason = 0;  // enum sublet_presence_reason
  double owner_cpu = 0;
  int64_t input_idle_ms = -1;
  uint32_t slots_free = 0;
  uint64_t memory_free = 0;
  uint64_t disk_free = 0;
  double speed = 0;    // client/machine/speed.h; 0: not known
  double load = 0;     // the average of the last minute; 0: not known, too
  uint32_t ahead = 0;  // orders that it takes ahead of time
  LoginsReport logins;
};

// ATTEMPT_... and VERDICT_... of the IDL, the same numbers.
inline constexpr uint32_t kAttemptStaging = 2;
inline constexpr uint32_t kAttemptRunning = 3;
inline constexpr uint32_t kAttemptLeaving = 4;
inline constexpr uint32_t kAttemptSuspended = 6;
inline constexpr uint32_t kAttemptDelivering = 7;
inline constexpr uint32_t kVerdictCounts = 1;
inline constexpr uint32_t kVerdictSuperseded = 2;
inline constexpr uint32_t kVerdictKnown = 3;
inline constexpr uint32_t kVerdictLater = 4;

struct HeldAttempt {
  AttemptName name;
  uint32_t state = kAttemptStaging;
  int64_t cpu_ms = 0;
  uint64_t memory = 0;
  uint64_t disk = 0;  // bytes; 0: not known
  int32_t progress_ppm = -1;
  uint64_t generation = 0;
  uint64_t delivered = 0;   // kAttemptDelivering: changes while it makes progress
  bool waits = false;       // for a slot
  int64_t at_risk_ms = -1;  // CPU time that no checkpoint on the server holds; -1: it does not run
  std::string message;      // what the program says of itself, as it wrote it
};

struct AttemptVerdict {
  AttemptName name;
  uint32_t value = kVerdictCounts;
};

struct Joined {
  MachineIdentity identity;
  int64_t lease_ms = 0;
  int64_t renew_every_ms = 0;
  int64_t server_time_us = 0;
  int64_t asked_ns = 0;  // CLOCK_BOOTTIME when the call was made
};

struct Renewed {
  int64_t lease_ms = 0;
  int64_t server_time_us = 0;
  std::vector<AttemptVerdict> verdicts;
  LoginsAnswer logins;
};

struct AttemptStart {
  AttemptName name;
  int64_t at_us = 0;   // UTC
  int64_t ran_ms = 0;  // since then
};

// Like the IDL's EndReport.
struct AttemptEnd {
  AttemptName name;
  uint32_t end = 0;
  std::string reason;
  int32_t exit_status = -1;
  int32_t signal = 0;
  int64_t started_us = 0;
  int64_t finished_us = 0;
  int64_t wall_ms = 0;
  int64_t staging_ms = 0;  // with its slot, before its program was started; 0: not known
  int64_t cpu_us = 0;
  int64_t cpu_saved_us = -1;
  uint64_t memory_peak = 0;
  bool memory_short = false;    // it had to leave because the machine's memory ran short
  uint64_t processes_peak = 0;  // threads count too; 0: not known
  uint64_t disk_peak = 0;       // in its folder, when it ended or the disk ran low; 0: not known
  int64_t network_bytes = -1;   // sent and received, without loopback; -1: not known
  uint64_t generation = 0;
  uint64_t checkpoint_bytes = 0;
  uint64_t resumed_generation = 0;
  int32_t resumed_ppm = -1;
  int32_t progress_ppm = -1;
  protocol::EvictionSteps steps;
  uint32_t sensed = 0;    // enum sublet_presence_reason; not reported
  int64_t sensed_ns = 0;  // CLOCK_BOOTTIME, 0: not known; not reported
  bool stdout_cut = false;
  bool stderr_cut = false;
  std::vector<uint64_t> outputs;
};

// Does not set the session, which the call adds.
inline FilePlace place_of(FileKind kind, const AttemptName& attempt, const std::string& name) {
  FilePlace place;
  place.kind = kind;
  place.job = attempt.job;
  place.attempt = attempt.attempt;
  place.name = name;
  return place;
}

struct RemoteFile {
  uint64_t size = 0;
  Digest digest = {};
  uint64_t generation = 0;  // of a checkpoint; 0: there is none
};
struct Upload {
  uint64_t id = 0;
  uint64_t offset = 0;
};
inline constexpr size_t kMostReports = 100;

// Every call throws ServerError.
class ServerCalls : public ContentCalls {
 public:
  virtual Joined join(const MachineIdentity& identity, const MachineFacts& facts) = 0;
  // Gives the session our reference. After join(), once its answer has been stored.
  virtual void attach() = 0;
  virtual void report_state(const MachineState& state) = 0;
  virtual Renewed renew(const MachineState& state, const std::vector<HeldAttempt>& held) = 0;
  virtual void withdraw() = 0;
  // HOST:PORT in numbers; "": on this machine, or not reached yet. No call; any thread.
  virtual std::string address() const = 0;

  // At most kMostReports per call.
  virtual std::vector<AttemptVerdict> started(const std::vector<AttemptStart>& starts) = 0;
  virtual std::vector<AttemptVerdict> ended(const std::vector<AttemptEnd>& ends) = 0;

  virtual Upload open_upload(const RequestId& request, const FilePlace& place, uint64_t size,
                             const Digest& digest) = 0;
  virtual uint64_t close_upload(uint64_t upload) = 0;
  virtual RemoteFile stat(const FilePlace& place) = 0;
  // For a process of this client's. Makes no call.
  virtual ContentDoor content_door() = 0;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_SERVER_CALLS_H_
