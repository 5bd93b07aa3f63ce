// Submits a plan: all of its jobs exist afterwards, or none. Main thread.
#ifndef SUBLET_CLI_TRANSFER_SUBMISSION_H_
#define SUBLET_CLI_TRANSFER_SUBMISSION_H_

#include "cli/batch/plan.h"
#include "cli/pool/pool_client.h"
#include "cli/transfer/transfer.h"

namespace sublet::cli {

struct Submitted {
  uint64_t batch = 0;  // 0: a job by itself
  IdRange jobs;
};

// Makes the server's checks of each job (job/check.h). Throws PoolError.
void check_plan(const BatchPlan& plan);

// `files` has read the inputs of the plan, which is checked. On an error or Ctrl-C the batch is
// given up, and nothing was submitted; only when the connection is lost in the very commit can that
// not be known, and the PoolError says so.
Submitted submit_plan(PoolClient& pool, const BatchPlan& plan, InputFiles& files);

// This machine's name, as jobs are submitted with.
std::string host_name();

// How the jobs are put into calls: neighbours of one append at most 1,000 jobs
// and about half a message; an array alone. Indices of the plan: [first, last).
struct AppendCall {
  size_t first = 0;
  size_t last = 0;
  bool array = false;
  bool operator==(const AppendCall&) const = default;
};
// A sweep whose values are too many for one message: its first axis, which
// changes slowest, in pieces. Without axes: none.
struct SweepPiece {
  std::vector<Axis> axes;
  uint64_t first_index = 0;
};
std::vector<SweepPiece> sweep_pieces(const std::vector<Axis>& axes);
std::vector<AppendCall> append_calls(const BatchPlan& plan);
// About as many octets as the description takes in a message.
size_t description_size(const PlannedJob& job);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_SUBMISSION_H_
