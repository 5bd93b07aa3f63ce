// Submits a plan: afterwards either all of its jobs exist, or none.
#ifndef SUBLET_CLI_TRANSFER_SUBMISSION_H_
#define SUBLET_CLI_TRANSFER_SUBMISSION_H_

#include <functional>

#include "cli/batch/plan.h"
#include "cli/pool/pool_client.h"
#include "cli/transfer/submission_outcome.h"
#include "cli/transfer/transfer.h"

namespace sublet::cli {

// Makes the server's checks of each job (job/check.h). Throws PoolError.
void check_plan(const BatchPlan& plan);

// One submission, until what came of it has been told. The command's thread, except interrupt().
class Submission {
 public:
  // `files` must have read the plan's inputs, and check_plan() must have passed. On an error the
  // batch is discarded and nothing is submitted. Only if the connection is lost during the commit
  // is the outcome unknown; the PoolError says so. `pool` must outlive this.
  Submitted run(PoolClient& pool, const BatchPlan& plan, InputFiles& files);

  // For WhenInterrupted, from before run() on; see SubmissionOutcome. Any thread.
  void interrupt(const std::function<void(const PoolError&)>& failed,
                 const std::function<void(const Submitted&)>& submitted);
  void announce(const std::function<void()>& how) { outcome_.announce(how); }
  void tell(const std::function<void()>& how) { outcome_.tell(how); }

 private:
  IdRange submit_batch(PoolClient& pool, const BatchPlan& plan, InputFiles& files);
  // Waits for the end of the process if it was interrupted.
  void begin_commit();

  SubmissionOutcome outcome_;
  PoolClient* pool_ = nullptr;  // set before the outcome knows of a batch
};

// This machine's name, as recorded with submitted jobs.
std::string host_name();

// How jobs are grouped into append calls: adjacent jobs, at most 1,000 and about half a
// message per call; an array has its own call. Indices in the plan: [first, last).
struct AppendCall {
  size_t first = 0;
  size_t last = 0;
  bool array = false;
  bool operator==(const AppendCall&) const = default;
};
// A sweep with too many values for one message is split along its first axis, which
// changes slowest. Without axes there are no pieces.
struct SweepPiece {
  std::vector<Axis> axes;
  uint64_t first_index = 0;
};
std::vector<SweepPiece> sweep_pieces(const std::vector<Axis>& axes);
std::vector<AppendCall> append_calls(const BatchPlan& plan);
// The approximate size of the description in a message, in octets.
size_t description_size(const PlannedJob& job);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_SUBMISSION_H_
