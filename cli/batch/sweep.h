// Parameters of arrays: read from a batch file or a table, put into jobs. Pure,
// except for add_table and read_lines.
#ifndef SUBLET_CLI_BATCH_SWEEP_H_
#define SUBLET_CLI_BATCH_SWEEP_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/batch/plan.h"
#include "cli/batch/toml_reader.h"

namespace sublet::cli {

// `parameters = { rate = [0.1, 0.2], seed = { from = 1, to = 100, step = 1 } }`: an
// axis each, in the file's order.
void add_parameters(const TomlReader& r, const TomlMember& m, std::vector<Axis>* axes);
// `table = "FILE.csv"`: one axis with the columns that its first line names.
void add_table(const TomlReader& r, const TomlMember& m, std::vector<Axis>* axes);
// RFC 4180: quotes, doubled inside; lines end in LF or CRLF. Throws DocumentError.
Axis parse_csv(std::string_view text, const std::string& file);

// How many jobs; fails at `at` when there are more than a batch may have.
uint64_t combinations(const TomlReader& r, const TomlValue& at, const std::vector<Axis>& axes);
// What is wrong with the job's "{NAME}"s (one that is nearly a parameter's name, a
// parameter that is used nowhere), or "".
std::string check_placeholders(const PlannedJob& job);

// An array whose inputs depend on its parameters, as single jobs; else the job.
std::vector<PlannedJob> told_apart(const PlannedJob& job);
uint64_t jobs_told_apart(const PlannedJob& job);  // how many that are

// For `submit --each`: the lines of a file descriptor, without empty ones. Throws
// PoolError.
std::vector<std::string> read_lines(int fd);
// Makes the job an array of one for each line, which stands for "{}" in its
// arguments, or behind them.
void run_for_each(PlannedJob* job, std::vector<std::string> lines);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_BATCH_SWEEP_H_
