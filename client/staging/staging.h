// Moving in: fetches the inputs and the checkpoint of an attempt into its
// folder, and writes the shepherd's order. What was fetched before for another
// job is copied from the machine's own cache, but only after the server has said
// that this attempt may have it, and what it is. After a server that was away it
// continues where it stopped. Runs on a worker thread; reads AttemptWork::stop
// between chunks.
#ifndef SUBLET_CLIENT_STAGING_STAGING_H_
#define SUBLET_CLIENT_STAGING_STAGING_H_

#include <string>

#include "attempt/cgroup.h"
#include "attempt/folder.h"
#include "client/attempts/work.h"
#include "client/staging/input_cache.h"
#include "protocol/attempt.h"

namespace sublet::client {

// What the client's settings say about jobs.
struct JobSettings {
  std::string monitor_socket;
  AttemptCgroups cgroups;
  int64_t save_deadline_ms = 2000;
  int64_t save_deadline_most_ms = 10'000;
  int64_t cpu_allowance_ms = 50;
  int64_t patience_ms = 3600 * 1000;
  uint64_t output_text = 1 << 20;
  uint64_t output_file = 1u << 30;
  // Whatever a job asks for; of all output files together.
  uint64_t output_text_most = 64u << 20;
  uint64_t output_file_most = uint64_t{4} << 30;
  uint64_t checkpoint_largest = 1u << 30;

  uint64_t text_bound(const Assignment& what) const;
  uint64_t file_bound(const Assignment& what) const;
};

struct StagingOutcome {
  TaskResult result = TaskResult::kDone;
  protocol::EndCode failed = protocol::kEndNone;  // with kDone: it cannot be staged
  std::string reason;
};

StagingOutcome stage(AttemptWork& work, ServerCalls& server, InputCache& cache);

// The shepherd's order, with the current lease.
AttemptOrder make_order(const AttemptWork& work, const JobSettings& settings);

// Exactly what the job's program finds in its environment, but for what the
// shepherd adds.
std::vector<std::string> job_environment(const Assignment& assignment,
                                         const std::string& work_folder);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_STAGING_H_
