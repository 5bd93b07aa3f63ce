// What a user wants done, as the server keeps it: the plain form of
// JobDescription (idl/types.idl has the meaning and unit of every field).
#ifndef SUBLET_SERVER_JOB_SPEC_H_
#define SUBLET_SERVER_JOB_SPEC_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job/axis.h"
#include "scheduling/types.h"

namespace sublet::server {

struct JobSpec {
  struct Input {
    uint64_t file = 0;
    std::string name;
    bool executable = false;
  };
  struct Output {
    std::string name;
    bool required = true;
  };
  struct Limits {
    int64_t cpu_ms = 0;
    int64_t wall_ms = 0;
    uint64_t memory = 0;
    uint64_t output_text = 0;
    uint64_t output_file = 0;
    uint32_t processes = 0;
  };
  std::string name;
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  scheduling::Requirements needs;
  Limits limits;
  int32_t priority = 0;
  uint32_t retries = 0;
  int64_t save_deadline_ms = 0;
  std::vector<std::pair<std::string, std::string>> more;
};

// One description for `count` jobs; "{index}" stands for first_index, + 1, ...,
// "{NAME}" for the values of the axes in all their combinations.
struct SpecRange {
  JobSpec spec;
  bool is_array = false;
  uint64_t first_index = 0;
  uint64_t count = 1;
  std::vector<Axis> axes = {};
};

// Checks what a user sent; throws Refusal (kInvalid, kLimitExceeded) naming the
// field. `subject` is put in front, e.g. "job 3 of the append".
void check_spec(const JobSpec& spec, const std::string& subject);

std::string encode(std::span<const SpecRange> specs);
// Throws Damaged.
std::vector<SpecRange> decode_specs(std::string_view bytes);

// Checks an array: its count, its axes, and that no value leads an output out of the
// job's folder; with axes sets `count`. Throws as check_spec does.
void check_axes(SpecRange& range, const std::string& subject);

// The description of the job at `offset` (from 0) in the range, "{index}" and
// "{NAME}" replaced in arguments, environment and output names; in these no
// character of a value makes a pattern.
JobSpec spec_at(const SpecRange& range, uint64_t offset);

// The platforms of its "program@OS/ARCHITECTURE" as Requirements::platforms has them.
std::string platforms_of(const JobSpec& spec);

// Whether a file of this name belongs to one of the job's outputs.
bool describes(const JobSpec& spec, std::string_view file);

// Whether a file name stays inside the folder it is put in: relative, no "..",
// no empty or "." component, no NUL, at most 4,096 octets and 64 components.
bool is_inside(std::string_view name);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_JOB_SPEC_H_
