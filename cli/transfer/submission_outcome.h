// What comes of one submission, and that it is said once: by the command's thread or, when the
// command is interrupted, by the thread that handles that. Whatever the instant, it is true.
#ifndef SUBLET_CLI_TRANSFER_SUBMISSION_OUTCOME_H_
#define SUBLET_CLI_TRANSFER_SUBMISSION_OUTCOME_H_

#include <cstdint>
#include <functional>
#include <mutex>

#include "cli/pool/pool.h"

namespace sublet::cli {

struct Submitted {
  uint64_t batch = 0;  // 0: a single job
  IdRange jobs;
};

// Functions given to it are called with a lock held: they must not call it.
class SubmissionOutcome {
 public:
  // The command's thread, in this order.
  void batch_opened(uint64_t batch);
  // False if it was interrupted: nothing may be committed any more.
  bool begin_commit();
  Submitted committed(IdRange jobs);
  // Calls `how`, which says that the jobs are submitted, unless interrupt() has said something.
  // After tell(), it says nothing any more.
  void announce(const std::function<void()>& how);
  void tell(const std::function<void()>& how);

  // Any thread, once, before the process ends. Calls `failed` with what is to be said if the jobs
  // are not submitted (then they never will be), or if nobody knows, and `submitted` if they are.
  // Returns the batch that is to be discarded; 0: none.
  uint64_t interrupt(const std::function<void(const PoolError&)>& failed,
                     const std::function<void(const Submitted&)>& submitted);

 private:
  enum class Stage { kSending, kCommitting, kSubmitted, kTold, kInterrupted };

  std::mutex mutex_;  // for the following
  Stage stage_ = Stage::kSending;
  Submitted submitted_;
};

}  // namespace sublet::cli

#endif  // SUBLET_CLI_TRANSFER_SUBMISSION_OUTCOME_H_
