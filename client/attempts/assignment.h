// What the client has promised to run, whole: written to assignment in the
// attempt's folder before `run` is answered, and everything it needs to continue
// after a restart. Also how an attempt ended, where no exit record of a
// shepherd can say it. Plain data; no ORB types.
#ifndef SUBLET_CLIENT_ASSIGNMENT_H_
#define SUBLET_CLIENT_ASSIGNMENT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attempt/folder.h"
#include "base/files.h"
#include "client/attempts/record.h"

namespace sublet::client {

struct InputFile {
  uint64_t file = 0;
  std::string name;
  bool executable = false;
  bool operator==(const InputFile&) const = default;
};

struct OutputFile {
  std::string name;
  bool required = false;
  bool operator==(const OutputFile&) const = default;
};

// Limits: 0 is none, or the client's own default where it has one.
struct Assignment {
  AttemptName name;
  std::string job_name;
  std::string user;
  std::string program;
  std::vector<std::string> arguments;  // without the program's name
  std::vector<std::string> environment;
  std::vector<InputFile> inputs;
  std::vector<OutputFile> outputs;
  uint64_t memory = 0;  // bytes
  int64_t cpu_ms = 0;
  int64_t wall_ms = 0;
  uint64_t output_text = 0;
  uint64_t output_file = 0;
  uint64_t processes = 0;
  int64_t save_deadline_ms = 0;
  uint64_t checkpoint_generation = 0;  // to resume from
  uint64_t checkpoint_bytes = 0;
  int64_t slot = 0;
  int64_t uid = -1;                    // of the slot; -1: the client's own
  std::array<uint8_t, 16> nonce = {};  // request ids of this attempt's uploads come from it
  int64_t accepted_us = 0;             // UTC
  // CLOCK_BOOTTIME; not kept on disk: a restarted client has no lease to give.
  int64_t first_lease_ns = 0;

  bool operator==(const Assignment&) const = default;
};

// Time to save in when asked to leave: what the job asks for, `standard_ms`
// where it asks for none, and never more than `most_ms`, which is the owner's.
inline int64_t save_deadline_of(const Assignment& what, int64_t standard_ms, int64_t most_ms) {
  int64_t wanted = what.save_deadline_ms > 0 ? what.save_deadline_ms : standard_ms;
  return wanted < most_ms ? wanted : most_ms;
}

struct EndRecord {
  uint32_t end = 0;  // protocol::EndCode
  std::string reason;
  int64_t at_us = 0;  // UTC
  bool operator==(const EndRecord&) const = default;
};

inline constexpr char kAssignmentFile[] = "assignment";
inline constexpr char kEndFile[] = "end";
inline constexpr uint64_t kAssignmentMaxBytes = 8u << 20;

std::string print_assignment(const Assignment& assignment);
Assignment parse_assignment(std::string_view text);  // throws RecordError
std::string print_end(const EndRecord& end);
EndRecord parse_end(std::string_view text);  // throws RecordError

// Throw FileError. An assignment need not survive a power failure, which ends the
// attempt, until its end has to wait for the server; an end always does.
void write_assignment(Files& files, const std::string& folder, const Assignment& assignment,
                      Files::Outlives outlives = Files::Outlives::kProcess);
void write_end(Files& files, const std::string& folder, const EndRecord& end);
// Throw FileError or RecordError.
Assignment read_assignment(const Files& files, const std::string& folder);
std::optional<EndRecord> read_end(const Files& files, const std::string& folder);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_ASSIGNMENT_H_
