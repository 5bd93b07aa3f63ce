// Parameters of arrays: reads them from a batch file or a table and inserts them into
// jobs. Pure, except for add_table, read_table and read_lines.
#ifndef SUBLET_CLI_BATCH_SWEEP_H_
#define SUBLET_CLI_BATCH_SWEEP_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/batch/plan.h"
#include "cli/batch/toml_reader.h"

namespace sublet::cli {

// `parameters = { rate = [0.1, 0.2], seed = { from = 1, to = 100, step = 1 } }`: one
// axis per parameter, in the file's order.
void add_parameters(const TomlReader& r, const TomlMember& m, std::vector<Axis>* axes);
// Returns an error text (a bad or duplicate name), or "".
std::string add_axis(Axis axis, std::vector<Axis>* axes);
// `table = "FILE.csv"`: one axis with the columns that its first line names.
void add_table(const TomlReader& r, const TomlMember& m, std::vector<Axis>* axes);
// The same of a file. Throws FileError or DocumentError.
Axis read_table(const std::string& path);
// RFC 4180: quotes, doubled inside; lines end in LF or CRLF. Throws DocumentError.
Axis parse_csv(std::string_view text, const std::string& file);

// Sets the number of jobs that the axes make. Returns an error text (more than a batch may
// have), or "".
std::string count_combinations(const std::vector<Axis>& axes, uint64_t* count);
// These check "{NAME}"s of an array; of a single job they are ordinary text. Each returns an error
// text, or "".
// A text in which parameters are replaced: a "{NAME}" that is nearly a parameter's is an error, but
// not "${NAME}", which may be a shell's variable.
std::string misspelt_placeholder(const PlannedJob& job, const std::string& text);
// A text in which they are not: so is one that is a parameter's. `what`: "a job's name".
std::string misplaced_placeholder(const PlannedJob& job, const std::string& text,
                                  const std::string& what);
// A parameter that occurs nowhere.
std::string unused_parameter(const PlannedJob& job);

// The values that this job of an array has, "index" too.
Values values_of(const PlannedJob& job, uint64_t index);

// Turns an array whose inputs depend on its parameters into single jobs; returns any
// other job unchanged.
std::vector<PlannedJob> told_apart(const PlannedJob& job);
uint64_t jobs_told_apart(const PlannedJob& job);  // the size of told_apart()'s result

// For `submit --each`: the non-empty lines of a file descriptor. Throws PoolError.
std::vector<std::string> read_lines(int fd);
// Makes the job an array with one job for each line. The line replaces "{}" in the
// arguments, or is appended to them.
void run_for_each(PlannedJob* job, std::vector<std::string> lines);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_BATCH_SWEEP_H_
