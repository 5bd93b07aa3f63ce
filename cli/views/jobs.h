// Jobs as people and programs see them: tables, a job's whole story, JSON
// (shapes in docs/json.md). Pure functions.
#ifndef SUBLET_CLI_VIEWS_JOBS_H_
#define SUBLET_CLI_VIEWS_JOBS_H_

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/pool/pool.h"
#include "cli/views/output.h"

namespace sublet::cli {

// Neighbours of a batch that stand alike and run nowhere as one: same name, user and
// state, and the same reason (those that wait: whatever it is). It has the sums of
// what they used, the least of their progress, the last of their changes, and a
// machine and a reason only where all have the same.
std::vector<JobSummary> joined(const std::vector<JobSummary>& jobs);

std::string jobs_table(const std::vector<JobSummary>& jobs, int64_t now_us, size_t width,
                       bool colour);
std::string job_story(const JobDetail& job, int64_t now_us, size_t width, bool colour);
// "job 7 letters: waiting for 3 min: no machine has 64 GiB of memory"; of a run its
// first job's reason.
std::string why_line(const JobSummary& run, int64_t now_us);
Colour state_colour(uint32_t job_state);
// "8 jobs: 7 done, 1 failed"
std::string counts_line(const JobCounts& counts);

void write_json(JsonWriter& json, const JobSummary& job);
// The same of a run of jobs, with its count.
void write_run(JsonWriter& json, const JobSummary& run);
void write_json(JsonWriter& json, const JobDetail& job);
void write_json(JsonWriter& json, const JobCounts& counts);
// The description as it is submitted: of `show --json` and of --dry-run.
void write_json(JsonWriter& json, const JobDescription& job);

// "./prog.linux-x86_64 on linux/x86_64, ..."; "" without programs of platforms.
std::string programs_line(const JobDescription& job);
// As one could type it in a shell.
std::string command_line(const JobDescription& job);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_VIEWS_JOBS_H_
