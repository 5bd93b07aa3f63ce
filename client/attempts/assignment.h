// The client's promise to run an attempt: the file `assignment` in the attempt's
// folder, written before `run` returns, with everything needed to continue after a
// restart. Also the file `end`: how an attempt ended if its shepherd left no exit
// record. Plain data; no ORB types.
#ifndef SUBLET_CLIENT_ATTEMPTS_ASSIGNMENT_H_
#define SUBLET_CLIENT_ATTEMPTS_ASSIGNMENT_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attempt/folder.h"
#include "base/files.h"
#include "base/random.h"
#include "client/attempts/record.h"
#include "job/description.h"

namespace sublet::client {

struct Assignment {
  AttemptName name;
  JobDescription job;  // its program is this platform's
  std::string user;
  uint64_t checkpoint_generation = 0;  // to resume from
  uint64_t checkpoint_bytes = 0;
  std::vector<std::string> gpus;  // MachineFacts::gpus that it has
  int64_t slot = 0;
  int64_t uid = -1;         // of the slot; -1: the client's own
  RequestId nonce = {};     // the request ids of this attempt's uploads derive from it
  int64_t accepted_us = 0;  // UTC
  // CLOCK_BOOTTIME; not stored: after a restart there is no lease until a renewal.
  int64_t first_lease_ns = 0;

  bool operator==(const Assignment&) const = default;
};

// Time to save when asked to leave: what the job asks for, else `standard_ms`; at
// most `most_ms`, the owner's limit.
inline int64_t save_deadline_of(const Assignment& what, int64_t standard_ms, int64_t most_ms) {
  int64_t wanted = what.job.save_deadline_ms > 0 ? what.job.save_deadline_ms : standard_ms;
  return wanted < most_ms ? wanted : most_ms;
}

// What it does when the owner is back: the stricter of the owner's wish and the job's.
inline sublet_leaving leaving_of(const Assignment& what, sublet_leaving owners) {
  return sublet_leaving_stricter(owners, static_cast<sublet_leaving>(what.job.leaving));
}

// The limit of its resident memory, in bytes; 0: none.
inline uint64_t memory_bound(const JobDescription& job) {
  if (job.needs.memory == 0 || job.bounds.memory == 0) return job.needs.memory + job.bounds.memory;
  return std::min(job.needs.memory, job.bounds.memory);
}

struct EndRecord {
  uint32_t end = 0;  // protocol::EndCode
  std::string reason;
  int64_t at_us = 0;  // UTC
  bool operator==(const EndRecord&) const = default;
};

inline constexpr char kAssignmentFile[] = "assignment";
inline constexpr char kEndFile[] = "end";
// What the exit record names, and the record itself, survive a loss of power.
inline constexpr char kSyncedFile[] = "synced";
// The last copy of the job's checkpoint files (staging/own_files.h).
inline constexpr char kPackedFile[] = "packed";
inline constexpr uint64_t kAssignmentMaxBytes = 8u << 20;

std::string print_assignment(const Assignment& assignment);
Assignment parse_assignment(std::string_view text);  // throws RecordError
std::string print_end(const EndRecord& end);
EndRecord parse_end(std::string_view text);  // throws RecordError

// Throw FileError. An assignment must survive a power failure only once the
// attempt's end waits to be reported (before that, power failure ends the attempt);
// an end always must.
void write_assignment(Files& files, const std::string& folder, const Assignment& assignment,
                      Files::Outlives outlives = Files::Outlives::kProcess);
void write_end(Files& files, const std::string& folder, const EndRecord& end);
// Throw FileError or RecordError.
Assignment read_assignment(const Files& files, const std::string& folder);
std::optional<EndRecord> read_end(const Files& files, const std::string& folder);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ATTEMPTS_ASSIGNMENT_H_
