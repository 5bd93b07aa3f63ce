// Waits for jobs to end and tells how it goes. Nothing depends on the waiting:
// it may be broken off and taken up again at any time. Main thread.
#ifndef SUBLET_CLI_COMMANDS_WAITING_H_
#define SUBLET_CLI_COMMANDS_WAITING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "cli/commands/commands.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

struct WaitResult {
  JobCounts counts;
  uint64_t evictions = 0;  // seen while waiting
  uint64_t stopped = 0;    // of those removed: by a batch that has stopped as it was to
  bool timed_out = false;
  // 0, or kExitJobsFailed: some failed or were removed otherwise.
  int exit_status() const;
};

// Until all jobs of the filter have ended, or timeout_ms is over. On a terminal
// one line that changes, else a line when the counts have changed, at most one
// a second; both on stderr. A server that is away is waited for, up to ten
// minutes. Ctrl-C ends the process and says how to come back. PoolError.
WaitResult wait_for_jobs(Context& context, const JobFilter& filter,
                         std::optional<int64_t> timeout_ms);

// Milliseconds until the rest has ended, from how fast jobs ended so far;
// nothing while that would be a guess (fewer than 3, or less than 5 s).
std::optional<int64_t> time_left(uint64_t ended, uint64_t left, int64_t elapsed_ms);
std::string progress_line(const JobCounts& counts, uint64_t evictions,
                          std::optional<int64_t> left_ms);

// Names the jobs that did not end well (at most ten) on stderr, and prints the
// summary line. Returns the exit status.
int report_wait(Context& context, const JobFilter& filter, const WaitResult& result);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_COMMANDS_WAITING_H_
