// Output of jobs: tables, a job's details, JSON (formats in docs/json.md). Pure functions.
#ifndef SUBLET_CLI_VIEWS_JOBS_H_
#define SUBLET_CLI_VIEWS_JOBS_H_

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/pool/pool.h"
#include "cli/views/output.h"

namespace sublet::cli {

// Joins adjacent jobs of a batch that do not run and have the same name, user, priority, state and
// reason (if they wait or are done, any reason). The joined entry has the sums of their usage, the
// least progress, the latest change, and a machine and a reason only if all have the same.
std::vector<JobSummary> joined(const std::vector<JobSummary>& jobs);

std::string jobs_table(const std::vector<JobSummary>& jobs, int64_t now_us, size_t width,
                       bool colour);
std::string job_story(const JobDetail& job, int64_t now_us, size_t width, bool colour);
// "job 7 letters: waiting for 3 min: no machine has 64 GiB of memory"; for a run, its first
// job's reason.
std::string why_line(const JobSummary& run, int64_t now_us);
Colour state_colour(uint32_t job_state);
// "8 jobs: 7 done, 1 failed"
std::string counts_line(const JobCounts& counts);

void write_json(JsonWriter& json, const JobSummary& job);
// The same for a run of jobs, with its count.
void write_run(JsonWriter& json, const JobSummary& run);
void write_json(JsonWriter& json, const JobDetail& job);
void write_json(JsonWriter& json, const JobCounts& counts);
// The description as submitted, for `show --json` and --dry-run.
void write_json(JsonWriter& json, const JobDescription& job);

// One job, or a run of an array's, of a graph.
struct GraphLine {
  JobSummary run;
  JobDescription description;
};
// A line for each, with what it waits for.
std::string graph_table(const std::vector<GraphLine>& lines, size_t width, bool colour);
void write_json(JsonWriter& json, const GraphLine& line);

// "17-20,23; 30 started"; "" if it waits for none.
std::string waits_for_line(const Dependences& waits_for);
// "./prog.linux-x86_64 on linux/x86_64, ..."; "" without programs for platforms.
std::string programs_line(const JobDescription& job);
// The command line, quoted for a shell.
std::string command_line(const JobDescription& job);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_JOBS_H_
