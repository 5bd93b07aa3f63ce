// The pool as seen by the command: plain structs, one for each type of the public contract
// (idl/), without the ORB's types. The names are those of idl/, which documents the fields'
// meanings, units and ranges. Plain values.
#ifndef SUBLET_CLI_POOL_POOL_H_
#define SUBLET_CLI_POOL_POOL_H_

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "job/description.h"
#include "job/file_place.h"
#include "job/state.h"
#include "job/stop_when.h"
#include "protocol/eviction.h"

namespace sublet::cli {

// The numbers of idl/, checked when idl_translation.cc is compiled. Unknown values are shown
// as numbers.
enum MachineState : uint32_t {
  kMachineIdle = 1,
  kMachineBusy = 2,
  kMachineSilent = 3,
  kMachineGone = 4
};
enum GroupBy : uint32_t {
  kByUser = 1,
  kByMachine = 2,
  kByBatch = 3,
  kByDay = 4,
  kByWeek = 5,
  kByJob = 6
};

inline constexpr uint64_t kJobsPerAppend = 1000;
inline constexpr uint64_t kJobsPerBatch = 1'000'000;
inline constexpr uint32_t kPageLimit = 1000;
inline constexpr int32_t kMostPriority = 1'000'000;  // of a job among its user's own, and least

enum class ErrorKind {
  usage,
  invalid,
  not_found,
  not_permitted,
  conflict,
  limit_exceeded,
  unavailable,
};

// Any error that ends a command: the server's exceptions, the ORB's, and local errors.
// what() is the message alone.
class PoolError : public std::runtime_error {
 public:
  PoolError(ErrorKind kind, std::string code, const std::string& message, std::string advice = "",
            std::string subject = "")
      : std::runtime_error(message),
        kind(kind),
        code(std::move(code)),
        message(message),
        advice(std::move(advice)),
        subject(std::move(subject)) {}
  ErrorKind kind;
  std::string code;     // stable, see docs/errors.md
  std::string message;  // what is wrong
  std::string advice;   // what to do; may be empty
  std::string subject;  // what the error concerns; may be empty
  // The answer was lost: the server may have executed the call.
  bool maybe_done = false;
};

struct IdRange {
  uint64_t first = 0;
  uint64_t count = 0;
  bool operator==(const IdRange&) const = default;
};

struct JobFilter {
  std::vector<IdRange> ids;
  uint64_t batch = 0;
  std::string user;
  std::vector<uint64_t> states;
  bool unfinished_only = false;
  bool runs = false;  // in lists: one item for adjacent jobs that do not differ
  // Which of the jobs that were removed by their batch's stop_when.
  enum class Stopped { any, only, without };
  Stopped stopped = Stopped::any;
  // Of lists only:
  std::string name;  // a pattern; empty: any
  int64_t since_us = 0;
  bool newest_first = false;
};

struct JobSummary {
  uint64_t id = 0;
  uint64_t count = 1;  // of a run: the number of jobs that it represents, from `id` on
  uint64_t batch = 0;
  uint32_t index = 0;
  std::string name;
  std::string user;
  uint32_t state = 0;
  uint32_t attempts = 0;
  std::string machine;
  std::string reason;
  int64_t submitted_us = 0;
  int64_t changed_us = 0;
  int32_t progress_ppm = -1;
  int64_t cpu_kept_ms = 0;
  int64_t cpu_lost_ms = 0;
  uint32_t evictions = 0;
  int32_t priority = 0;  // as it is now
};

struct JobPage {
  std::vector<JobSummary> jobs;
  std::string next;  // cursor; empty at the end
};

struct AttemptInfo {
  uint32_t number = 0;
  uint64_t machine = 0;
  std::string machine_name;
  uint32_t state = 0;
  uint32_t ended = 0;
  std::string reason;
  int64_t decided_us = 0;
  int64_t started_us = 0;
  int64_t finished_us = 0;
  int32_t exit_status = -1;
  int32_t signal = 0;
  int64_t cpu_ms = 0;
  int64_t cpu_lost_ms = 0;
  uint64_t memory_peak = 0;
  uint64_t processes_peak = 0;  // this and disk_peak: 0: not known
  uint64_t disk_peak = 0;
  int64_t network_bytes = -1;  // -1: not known
  uint64_t preempted_for = 0;  // the job that it gave way to; 0: to none
  uint64_t generation = 0;
  uint64_t checkpoint_bytes = 0;
  int32_t resumed_ppm = -1;
  int32_t progress_ppm = -1;
  protocol::EvictionSteps steps;
};

struct OutputInfo {
  std::string name;
  uint64_t size = 0;
  Digest digest{};
  bool cut = false;
};

struct JobDetail {
  JobSummary summary;
  JobDescription description;
  std::vector<AttemptInfo> attempts;
  std::vector<OutputInfo> outputs;
  std::string forecast;            // of a waiting job
  int64_t starts_at_us = 0;        // 0: no forecast
  std::string promised;            // the machine on which it is promised a place; empty: on none
  int64_t outputs_removed_us = 0;  // when the server removed them; 0: not removed
  // Of a job at work, as its machine last told:
  std::string message = {};  // what its program says of itself
  int64_t at_risk_ms = -1;   // CPU time that no checkpoint on the server holds; -1: not known
};

struct JobCounts {
  uint64_t waiting = 0, placed = 0, running = 0, held = 0, done = 0, failed = 0, removed = 0;
  uint64_t suspended = 0, delivering = 0;
  uint64_t other = 0;  // in states unknown to this command; counted as not final
  uint64_t unfinished() const {
    return waiting + placed + running + suspended + delivering + held + other;
  }
  uint64_t total() const { return unfinished() + done + failed + removed; }
  bool operator==(const JobCounts&) const = default;
};

struct Change {
  uint64_t number = 0;
  int64_t at_us = 0;
  uint64_t job = 0;
  uint64_t batch = 0;
  uint32_t state = 0;
  uint32_t attempt = 0;
  uint32_t ended = 0;
  uint64_t count = 1;  // the change is of this many jobs, from `job` on
};

struct AttemptPage {
  std::vector<AttemptInfo> attempts;
  std::string next;
};

struct OutputPage {
  std::vector<OutputInfo> outputs;
  std::string next;
};

struct PoolInfo {
  std::string name;
  std::string version;
  std::string id;  // hexadecimal
  uint64_t term = 0;
  int64_t uptime_ms = 0;
  std::vector<std::string> capabilities;
  Details more;
};

struct ChangePage {
  std::vector<Change> items;
  uint64_t last = 0;
  bool gap = false;
};

struct Control {
  uint64_t changed = 0;
  uint64_t unchanged = 0;
};

struct MachineInfo {
  uint64_t number = 0;
  std::string name, os, architecture, version;
  uint32_t cores = 0;
  uint32_t slots = 0;
  uint64_t memory = 0;
  uint64_t disk = 0;
  double speed = 0;  // 0: not known
  bool away = false;
  bool paused = false;         // by its owner's own word
  bool draining = false;       // by an administrator's word
  uint64_t failures = 0;       // of its own, since its last success
  std::string failure;         // the last of them
  int64_t rests_until_us = 0;  // it gets no jobs before; 0: it does not rest
  double owner_cpu = 0;
  int64_t input_idle_ms = -1;
  uint32_t slots_free = 0;
  uint64_t memory_free = 0;
  uint64_t disk_free = 0;
  rules::NamedAmounts resources, resources_free;
  uint32_t state = 0;
  bool requesting = false;
  int64_t state_since_us = 0;
  int64_t heard_us = 0;
  std::vector<std::pair<uint64_t, uint32_t>> running;  // job, attempt; administrators only
};

struct MachinePage {
  std::vector<MachineInfo> machines;
  std::string next;
};

struct Invitation {
  std::string token;
  int64_t expires_us = 0;
};

struct MemberInfo {
  std::string name;
  uint32_t role = 0;
  int64_t joined_us = 0;
  int64_t expires_us = 0;
  int64_t revoked_us = 0;
  std::string invited_by;
};

struct MemberPage {
  std::vector<MemberInfo> members;
  std::string next;
};

// Name and value, as in the server's settings: "jobs" "fifo".
struct Policies {
  Details parameters;
  int64_t since_us = 0;  // 0: not known
  std::string by;        // the administrator; empty: the settings
};

struct UserShares {
  std::string user;
  double shares = 0;
  bool by_administrator = false;
};

struct SharesPage {
  std::vector<UserShares> shares;
  std::string next;
};

struct Quota {
  std::string user;
  uint64_t bytes = 0;
  uint64_t used = 0;
  uint64_t checkpoints = 0;
  bool by_administrator = false;
};

struct QuotaPage {
  std::vector<Quota> quotas;
  std::string next;
};

// How long a step of evictions took, in microseconds after the cause was sensed.
struct StepSpread {
  std::string step;
  uint64_t count = 0;
  int64_t p50_us = 0, p95_us = 0, p99_us = 0, most_us = 0;
};

struct UsageLine {
  Details group;
  uint64_t jobs_done = 0;
  uint64_t attempts = 0;
  uint64_t evictions = 0;
  int64_t cpu_us = 0;
  int64_t kept_us = 0;
  int64_t lost_us = 0;
  int64_t wall_us = 0;
  int64_t charged_us = 0;
  int64_t waited_us = 0;
  int64_t local_us = -1;               // -1: the line is not for the whole pool
  std::vector<StepSpread> steps = {};  // if they were asked for
};

struct UsagePage {
  std::vector<UsageLine> lines;
  std::string next;
};

struct ReportQuery {
  int64_t since_us = 0;
  int64_t until_us = 0;
  std::vector<uint64_t> by;
  std::string user;
  bool steps = false;  // with how long the steps of evictions took
};

struct Standing {
  std::string user;
  double usage = 0;
  double charges = 0;
  double shares = 0;
  uint64_t active = 0;
  double best_priority = 0;
  std::string reason;
  uint64_t waiting = 0;
  uint64_t place = 0;
  int64_t cpu_day_us = -1;              // -1: not visible to the caller
  std::vector<std::string> users = {};  // who share this account; none: it is a user
};

struct StandingPage {
  std::vector<Standing> standings;
  std::string next;
};

struct Upload {
  uint64_t id = 0;
  uint64_t offset = 0;
};

// A piece of an attempt's output.
struct LogPart {
  uint32_t attempt = 0;
  uint64_t offset = 0;  // of the text's first byte
  std::string text;     // empty: nothing more yet, or the end
  bool ended = false;   // no more text will follow
  std::string machine;  // empty before the attempt exists
  bool cut = false;     // set at the end: the stream exceeded its limit
  bool busy = false;    // the machine was not asked: too many calls wait
};

// The calls that reading a job's streams needs; PoolClient is the real one.
class LogCalls {
 public:
  virtual ~LogCalls() = default;
  // kind: kStdout or kStderr; attempt 0: see idl/; hold_ms: 0 to 10,000.
  virtual LogPart read_log(uint64_t job, uint32_t attempt, FileKind kind, uint64_t offset,
                           int64_t hold_ms) = 0;
  virtual JobDetail show(uint64_t job) = 0;
};

// The calls that transfers need; PoolClient is the real one.
class SpoolCalls {
 public:
  virtual ~SpoolCalls() = default;
  virtual Upload open_upload(const RequestId& request, const FilePlace& place, uint64_t size,
                             const std::optional<Digest>& digest) = 0;
  // Returns the new offset.
  virtual uint64_t put(uint64_t upload, uint64_t offset, const std::string& chunk) = 0;
  virtual uint64_t close_upload(uint64_t upload) = 0;
  virtual std::string get(const FilePlace& place, uint64_t offset, uint32_t count) = 0;
  // Makes the server verify the contents of this place. Throws PoolError "spool.damaged" if
  // they are damaged, "spool.checking" while it checks: call again.
  virtual void doubt(const FilePlace& place) = 0;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_POOL_POOL_H_
