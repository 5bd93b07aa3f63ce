// Waits for jobs to end and shows the progress. Nothing depends on the waiting: it can be
// interrupted and started again at any time. Main thread.
#ifndef SUBLET_CLI_COMMANDS_WAITING_H_
#define SUBLET_CLI_COMMANDS_WAITING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/pool/pool.h"

namespace sublet::cli {

struct WaitResult {
  JobCounts counts;
  uint64_t evictions = 0;  // seen while waiting
  uint64_t stopped = 0;    // removed jobs: by their batch's stop_when
  bool timed_out = false;
  // 0, or kExitJobsFailed if some failed or were removed for another reason.
  int exit_status() const;
};

// Waits until all jobs of the filter have ended, or for timeout_ms. Progress on stderr: on
// a terminal one line that is rewritten, else a line when the counts have changed, at most
// one per second; while no job runs, also why, and again when the reason changes. Waits up to
// ten minutes for an unreachable server. Throws PoolError.
WaitResult wait_for_jobs(Context& context, const JobFilter& filter,
                         std::optional<int64_t> timeout_ms);

// For WhenInterrupted around waiting and fetching: says that the jobs stay in the pool, and
// the command that continues, with `options`, which end in a space. With --json prints an
// object with this as its error, after what `begin` writes into it.
std::function<void()> tell_how_to_continue(
    const Context& context, const JobFilter& filter, const std::string& options,
    std::function<void(JsonWriter&)> begin = [](JsonWriter&) {});

// Estimated milliseconds until the rest has ended, from the rate so far; nullopt while that
// would be a guess (fewer than 3 jobs, or less than 5 s).
std::optional<int64_t> time_left(uint64_t ended, uint64_t left, int64_t elapsed_ms);
std::string progress_line(const JobCounts& counts, uint64_t evictions,
                          std::optional<int64_t> left_ms);

// Prints the jobs that failed or were removed (at most ten) on stderr, and the summary
// line. Returns the exit status.
int report_wait(Context& context, const JobFilter& filter, const WaitResult& result);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_COMMANDS_WAITING_H_
