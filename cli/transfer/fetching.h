// Fetches the outputs of ended jobs from the spool into a folder of the user's, as the
// user. All names are checked before the first byte is written. Main thread.
#ifndef SUBLET_CLI_TRANSFER_FETCHING_H_
#define SUBLET_CLI_TRANSFER_FETCHING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

struct FetchOptions {
  void declare(Arguments& arguments);
  // The options as words of a command line, each followed by a space.
  std::string words() const;
  // Throws PoolError if the outputs cannot be written there; `make`: makes the folder.
  void check_folder(bool make) const;
  std::string into = ".";
  bool by_job = false;
  bool discard = false;  // then remove them from the server
};

struct PlannedFile {
  uint64_t job = 0;
  FilePlace place;
  OutputInfo info;
  std::string target;  // relative to the folder
};

struct FetchResult {
  std::vector<PlannedFile> files;    // all complete
  std::vector<uint64_t> unfinished;  // jobs skipped because they have not ended
  std::vector<uint64_t> removed;     // jobs whose outputs the server has removed
  uint64_t jobs = 0;
  uint64_t bytes = 0;
};

// The target of each output of these jobs. stdout and stderr become NAME.ID.out and
// NAME.ID.err, unless empty. Throws PoolError: a name that leaves the folder, or two
// outputs with the same target.
std::vector<PlannedFile> plan_fetch(const std::vector<JobDetail>& jobs, bool by_job);

FetchResult fetch_jobs(Context& context, const JobFilter& filter, const FetchOptions& options);
// Prints one job's stdout and stderr; stores its other outputs in the folder.
FetchResult fetch_and_print(Context& context, uint64_t job, const FetchOptions& options);

// "fetched 12 files of 8 jobs (1.2 MiB) into results"; warnings to stderr.
void report_fetch(const FetchResult& result, const FetchOptions& options);
void write_json(JsonWriter& json, const FetchResult& result, const FetchOptions& options);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_FETCHING_H_
