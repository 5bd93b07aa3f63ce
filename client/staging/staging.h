// Fetches the inputs and the checkpoint of an attempt into its folder, and makes the
// shepherd's order. An input fetched before for another job is copied from the
// machine's cache, but only after the server has confirmed that this attempt may have
// it, and its digest. If the server was unavailable, continues where it stopped. Runs
// on a worker thread; checks AttemptWork::stop between chunks.
#ifndef SUBLET_CLIENT_STAGING_STAGING_H_
#define SUBLET_CLIENT_STAGING_STAGING_H_

#include <functional>
#include <string>

#include "attempt/cgroup.h"
#include "attempt/folder.h"
#include "client/attempts/work.h"
#include "client/machine/network_rules.h"
#include "client/mover/mover.h"
#include "client/staging/input_cache.h"
#include "protocol/attempt.h"
#include "protocol/leaving.h"

namespace sublet::client {

// The client's settings for jobs.
struct JobSettings {
  std::string monitor_socket;
  AttemptCgroups cgroups;
  NetworkRules network;
  uint64_t bandwidth = 0;     // of each job, in bytes per second; 0: not bounded
  bool walls = false;         // whether jobs have walls (client/shepherd/walls/places.h)
  uint64_t disk_reserve = 0;  // the owner's, in bytes
  uint32_t slots = 1;
  uint64_t slot_memory = 0;  // a slot's part of the machine's, in bytes; 0: not bounded
  int64_t save_deadline_ms = 2000;
  int64_t save_deadline_most_ms = 10'000;
  int64_t cpu_allowance_ms = 50;
  int64_t patience_ms = 3600 * 1000;
  sublet_leaving leaving = SUBLET_LEAVING_SAVE;  // the owner's wish
  int64_t suspend_ms = 0;
  uint64_t output_text = 1 << 20;
  uint64_t output_file = 1u << 30;
  // Limits for what a job may ask for; output_file_most also limits all files together.
  uint64_t output_text_most = 64u << 20;
  uint64_t output_file_most = uint64_t{4} << 30;
  uint64_t checkpoint_largest = 1u << 30;
  std::function<int64_t()> mean_idle_s;  // IdleHistory::mean_s; null: not known

  uint64_t text_bound(const Assignment& what) const;
  uint64_t file_bound(const Assignment& what) const;
};

struct StagingOutcome {
  TaskResult result = TaskResult::kDone;
  protocol::EndCode failed = protocol::kEndNone;  // not kEndNone, with kDone: staging failed
  std::string reason;
};

// False: stage() would do nothing.
bool has_to_fetch(const Assignment& what);
StagingOutcome stage(AttemptWork& work, ServerCalls& server, Mover& mover, InputCache& cache,
                     Pace& pace);

// The shepherd's order, with the current lease.
// `disk_free`: bytes left on the disk with its folder. `server`: ServerCalls::address.
AttemptOrder make_order(const AttemptWork& work, const JobSettings& settings, uint64_t disk_free,
                        const std::string& server);

// The complete environment of the job's program, except what the shepherd adds. `mean_idle_s`: of
// this machine; 0: not known.
std::vector<std::string> job_environment(const Assignment& assignment,
                                         const std::string& work_folder, int64_t mean_idle_s);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_STAGING_STAGING_H_
