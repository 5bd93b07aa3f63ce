// What is to be submitted, before anything is sent: read from a batch file
// (cli/batch/file.h) or made by the command line. Pure.
#ifndef SUBLET_CLI_BATCH_PLAN_H_
#define SUBLET_CLI_BATCH_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/pool/pool.h"

namespace sublet::cli {

inline constexpr size_t kNamesPerJob = 4096;  // arguments, variables, inputs, outputs: each

struct PlannedInput {
  std::string path;  // on this machine
  std::string name;  // in the job's folder
  bool executable = false;
  std::string where = {};  // "FILE:LINE:COLUMN" that asked for it; empty: the command line
};

struct PlannedJob {
  JobDescription what;  // its inputs are filled in when they are uploaded
  std::vector<PlannedInput> inputs = {};
  uint64_t count = 0;  // 0: one job; else an array with the indices 0 to count - 1
  // Of an array: its parameters, all combinations of which make `count`.
  std::vector<Axis> axes = {};
};

struct BatchPlan {
  std::string name;
  StopWhen stop_when = {};
  std::vector<PlannedJob> jobs = {};
  uint64_t job_count() const;
};

// A program with a slash in its name is a file that is sent along: made an
// executable input of its base name, unless it is one of the inputs already. Those
// of platforms are called BASE.OS-ARCHITECTURE. Returns what is wrong, or "".
std::string send_program_along(PlannedJob* job, const std::string& folder,
                               const std::string& where);
// Adds it; returns what is wrong (a bad name, one that is there already), or "".
std::string add_input(PlannedJob* job, PlannedInput input);
std::string add_output(PlannedJob* job, const std::string& name, bool required);
// Replaces an older value. `name` without '='; returns what is wrong, or "".
std::string set_environment(PlannedJob* job, const std::string& name, const std::string& value);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_BATCH_PLAN_H_
