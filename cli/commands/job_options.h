// The options of `submit` that describe a job on the command line: one for each key that a
// [[job]] of a batch file can have. Main thread.
#ifndef SUBLET_CLI_COMMANDS_JOB_OPTIONS_H_
#define SUBLET_CLI_COMMANDS_JOB_OPTIONS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/options/arguments.h"
#include "cli/batch/plan.h"

namespace sublet::cli {

// The values as given; "", 0, kNotGiven and false: not given.
struct JobOptions {
  static constexpr int64_t kNotGiven = std::numeric_limits<int64_t>::min();

  std::string name;
  std::vector<std::string> inputs, inputs_from, executables, outputs, environment;
  std::string standard_input;  // "-": the command's own
  std::string os, architecture, memory, disk, require, prefer;
  std::string hours, not_before;
  std::vector<std::string> resources;
  int64_t cores = kNotGiven;
  std::string cpu_limit, wall_limit, memory_limit, output_text_limit, output_file_limit;
  int64_t processes_limit = kNotGiven;
  int64_t retries = 0;
  int64_t priority = 0;
  std::string save_deadline;
  std::vector<std::string> checkpoint;
  std::string checkpoint_every, checkpoint_signal;
  std::vector<std::string> checkpoint_exit;
  std::string leaving;
  std::string network;
  std::vector<std::string> after, after_any, after_start;
  std::string never_satisfied;
  int64_t at_most = kNotGiven;
  int64_t count = -1;  // -1: not given
  std::vector<std::string> parameters;
  std::string table;
  bool each = false;
  std::vector<std::string> stop_when;
  bool operator==(const JobOptions&) const = default;
};

void declare_job_options(Arguments& a, JobOptions* o);
// Those of them that say what the program finds, leaves and saves.
void declare_program_options(Arguments& a, JobOptions* o);
// The plan of a job with these options; `command`: its program and arguments. Reads the
// table, and standard input for --each and --stdin -. Throws PoolError or DocumentError.
BatchPlan plan_of_command(const JobOptions& o, const std::vector<std::string>& command);

// Throws PoolError "usage.submit".
[[noreturn]] void usage_error(const std::string& message, const std::string& advice);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_COMMANDS_JOB_OPTIONS_H_
