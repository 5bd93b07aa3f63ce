// The plan of a submission, before anything is sent: read from a batch file
// (cli/batch/file.h) or made by the command line. Pure.
#ifndef SUBLET_CLI_BATCH_PLAN_H_
#define SUBLET_CLI_BATCH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/pool/pool.h"

namespace sublet::cli {

inline constexpr size_t kNamesPerJob = 4096;  // arguments, variables, inputs, outputs: each

struct PlannedInput {
  std::string path;  // on this machine
  std::string name;  // in the job's folder
  bool executable = false;
  std::string where = {};  // "FILE:LINE:COLUMN" of the key; empty: the command line
};

// A job, or several, that another one waits for: not looked up yet (cli/batch/references.h).
struct PlannedReference {
  // "after", "after_any" or "after_start"; "inputs": an output of it is the `input`-th of the
  // job's `what.inputs`.
  std::string list;
  std::string text;
  uint32_t line = 0;  // where it is written; 0: on the command line
  uint32_t column = 0;
  size_t input = 0;
};

struct PlannedJob {
  // Its inputs are other jobs' outputs; the others are added when they are uploaded.
  JobDescription what;
  std::vector<PlannedInput> inputs = {};
  uint64_t count = 0;  // 0: one job; else an array with the indices 0 to count - 1
  // Parameters of an array; `count` is the number of their combinations.
  std::vector<Axis> axes = {};
  // Of each output in `what`: "FILE:LINE:COLUMN" of the key; empty: the command line.
  std::vector<std::string> output_places = {};
  std::vector<PlannedReference> references = {};
};

struct BatchPlan {
  std::string name;
  StopWhen stop_when = {};
  std::vector<PlannedJob> jobs = {};
  OnNever on_never = OnNever::kHold;
  uint64_t at_most = 0;  // of its jobs are on machines at a time; 0: any number
  uint64_t job_count() const;
};

// Adds a program with a slash in its name as an executable input with its base name,
// unless it is already an input. Programs for platforms are named
// BASE.OS-ARCHITECTURE. Returns an error text, or "".
std::string send_program_along(PlannedJob* job, const std::string& folder,
                               const std::string& where);
// Turns what.standard_input, as the user wrote it, into the name of an input: of the one that
// has that name, else of the file of that path, which is then sent. Returns an error text, or "".
std::string send_standard_input(PlannedJob* job, const std::string& folder,
                                const std::string& where);
// Returns an error text (bad or duplicate name), or "".
std::string add_input(PlannedJob* job, PlannedInput input);
// The same of an output of the job that `reference` names; without a name it keeps its own.
std::string add_input(PlannedJob* job, InputFile input, PlannedReference reference);
std::string add_output(PlannedJob* job, const std::string& name, bool required,
                       const std::string& where);
// Replaces an older value. `name` must not contain '='. Returns an error text, or "".
std::string set_environment(PlannedJob* job, const std::string& name, const std::string& value);
// Whether the batch can meet this condition of its stop_when ("done", "failed" or "output") if
// it is set. Returns an error text, or "".
std::string check_stop_when(const BatchPlan& plan, std::string_view condition);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_BATCH_PLAN_H_
