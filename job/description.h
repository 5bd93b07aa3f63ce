// The description of a job, and of several jobs that share one. The meaning, unit and range
// of each field are in idl/types.idl. Values; pure functions.
#ifndef SUBLET_JOB_DESCRIPTION_H_
#define SUBLET_JOB_DESCRIPTION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "job/axis.h"
#include "job/dependences.h"
#include "job/leaving.h"
#include "job/network.h"
#include "job/own_checkpoint.h"
#include "rules/named_amounts.h"

namespace sublet {

// An output of another job, by its id or, of the same batch, its index in it.
struct OutputOfJob {
  bool of_this_batch = false;
  uint64_t job = 0;
  std::string name = {};  // empty: none
  bool is_set() const { return !name.empty(); }
  bool operator==(const OutputOfJob&) const = default;
};

struct InputFile {
  uint64_t file = 0;  // 0: not sent, or not there, yet
  std::string name;
  bool executable = false;
  OutputOfJob source = {};
  bool operator==(const InputFile&) const = default;
};

struct OutputFile {
  std::string name;  // job/output_name.h
  bool required = true;
  bool operator==(const OutputFile&) const = default;
};

struct Requirements {
  std::string os;
  std::string architecture;
  uint32_t cores = 0;
  uint64_t memory = 0;
  uint64_t disk = 0;
  std::string require = {};            // an expression over what machines offer, which must hold
  std::string prefer = {};             // another, a number: the larger, the better
  rules::NamedAmounts resources = {};  // besides: of its machine, or of the pool's licences
  bool operator==(const Requirements&) const = default;
};

struct Limits {
  int64_t cpu_ms = 0;
  int64_t wall_ms = 0;
  uint64_t memory = 0;
  uint64_t output_text = 0;
  uint64_t output_file = 0;
  uint32_t processes = 0;
  bool operator==(const Limits&) const = default;
};

struct JobDescription {
  std::string name;
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=value
  std::vector<InputFile> inputs;
  std::vector<OutputFile> outputs;
  Requirements needs;
  Limits bounds;
  int32_t priority = 0;
  uint32_t retries = 0;
  int64_t save_deadline_ms = 0;
  OwnCheckpoint own_checkpoint = {};
  Leaving leaving = Leaving::kDefault;
  Network network = Network::kDefault;
  // "OS/ARCHITECTURE" and the program for it, instead of `program`.
  std::vector<std::pair<std::string, std::string>> programs = {};
  // Where it was submitted. Empty: unknown.
  std::string submit_folder = {};
  std::string submit_host = {};
  std::string standard_input = {};  // the name of one of its inputs; empty: /dev/null
  Dependences waits_for = {};
  bool even_so = false;  // to be taken even if no machine of the pool could run it
  // When it may be started: in these hours (rules/hours.h) of the server's local time, and not
  // before this instant. "", 0: at any time.
  std::string hours = {};
  int64_t not_before_us = 0;
  bool operator==(const JobDescription&) const = default;
};

// One description for `count` jobs; "{index}" is replaced by first_index,
// first_index + 1, ..., "{NAME}" by the values of the axes in all combinations.
struct SpecRange {
  JobDescription spec;
  bool is_array = false;
  uint64_t first_index = 0;
  uint64_t count = 1;
  std::vector<Axis> axes = {};
  bool operator==(const SpecRange&) const = default;
};

// The description of the job at `offset` (from 0) in the range, with "{index}" and
// "{NAME}" replaced in arguments, environment and output names. In output names the
// values are quoted, so that none of their characters makes a pattern.
JobDescription spec_at(const SpecRange& range, uint64_t offset);
// Only its outputs: the rest of a description may be large.
std::vector<OutputFile> outputs_at(const SpecRange& range, uint64_t offset);

// Whether a file of this name belongs to one of the job's outputs.
bool describes(const JobDescription& job, std::string_view file);

// The `more` of a description in the contract: fields that the struct there lacks.
namespace detail_name {
inline constexpr std::string_view kProgramAt = "program@";          // + OS/ARCHITECTURE
inline constexpr std::string_view kSubmitFolder = "submit_folder";  // percent-encoded
inline constexpr std::string_view kSubmitHost = "submit_host";
inline constexpr std::string_view kEvenSo = "even_so";  // "true"
inline constexpr std::string_view kHours = "hours";
}  // namespace detail_name
using Details = std::vector<std::pair<std::string, std::string>>;
Details details_of(const JobDescription& job);
// Calls take(name, value) for each of them, in that order.
template <typename Take>
void each_detail(const JobDescription& job, Take take) {
  for (const auto& [platform, program] : job.programs)
    take(std::string(detail_name::kProgramAt) + platform, program);
  if (!job.submit_folder.empty())
    take(detail_name::kSubmitFolder, percent_encode(job.submit_folder));
  if (!job.submit_host.empty()) take(detail_name::kSubmitHost, job.submit_host);
  if (job.even_so) take(detail_name::kEvenSo, "true");
  if (!job.hours.empty()) take(detail_name::kHours, job.hours);
}
// What a workstation is told of the job: without the details that concern the server alone,
// which a client daemon need not know and would refuse.
JobDescription for_workstation(JobDescription job);
// Sets the field for one of them; false: the name is unknown, or the value is not of its
// form.
bool take_detail(JobDescription& job, std::string_view name, std::string_view value);

}  // namespace sublet

#endif  // SUBLET_JOB_DESCRIPTION_H_
