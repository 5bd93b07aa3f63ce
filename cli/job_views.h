// Jobs as people and programs see them: tables, a job's whole story, JSON
// (shapes in docs/command.md). Pure functions.
#ifndef SUBLET_CLI_JOB_VIEWS_H_
#define SUBLET_CLI_JOB_VIEWS_H_

#include <string>
#include <vector>

#include "base/json.h"
#include "cli/output.h"
#include "cli/pool.h"

namespace sublet::cli {

std::string jobs_table(const std::vector<JobSummary>& jobs, int64_t now_us, size_t width,
                       bool colour);
std::string job_story(const JobDetail& job, int64_t now_us, size_t width, bool colour);
// "8 jobs: 7 done, 1 failed"
std::string counts_line(const JobCounts& counts);

void write_json(JsonWriter& json, const JobSummary& job);
void write_json(JsonWriter& json, const JobDetail& job);
void write_json(JsonWriter& json, const JobCounts& counts);
// The description as it is submitted: of `show --json` and of --dry-run.
void write_json(JsonWriter& json, const JobDescription& job);

// "./prog.linux-x86_64 on linux/x86_64, ..."; "" without programs of platforms.
std::string programs_line(const JobDescription& job);
// As one could type it in a shell.
std::string command_line(const JobDescription& job);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_JOB_VIEWS_H_
