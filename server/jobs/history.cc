#include "server/jobs/history.h"

#include <algorithm>

#include "base/log.h"
#include "server/commit/crash_point.h"
#include "server/commit/store.h"

namespace sublet::server {
namespace {
// Few enough that other commits wait for no more than some ten milliseconds.
constexpr uint32_t kJobsPerSlice = 250;
constexpr int kSlicesPerRound = 40;
// From the end of a pass over all finished jobs to the next: a fraction of `keep`.
constexpr Micros kPauses = 50;
constexpr Micros kLongestPause = 3600ll * 1'000'000;
}  // namespace

JobHistory::JobHistory(Micros keep, Archive& archive, Pipeline& pipeline)
    : keep_(keep), archive_(archive), pipeline_(pipeline) {}

void JobHistory::move_old() {
  if (keep_ == 0) return;
  Micros now = 0;
  pipeline_.perform([&](Turn& turn) { now = turn.now(); });
  if (now < next_pass_) return;
  for (int i = 0; i < kSlicesPerRound; ++i) {
    const Changes::MovedJobs finished = archive_.finished_jobs(after_, now - keep_, kJobsPerSlice);
    if (!finished.jobs.empty() && copied(finished)) {
      crash_point("moved");
      archive_.while_moving(
          [&] { pipeline_.perform([&](Turn& turn) { turn.changes().moved_jobs = finished; }); });
    }
    if (after_ != 0) continue;
    next_pass_ = now + std::min(keep_ / kPauses, kLongestPause);
    return;
  }
}

bool JobHistory::copied(const Changes::MovedJobs& finished) {
  try {
    archive_.copy_to_file(finished);
    complained_.erase(finished.month);
    return true;
  } catch (const std::runtime_error& e) {
    if (complained_.insert(finished.month).second)
      log(Severity::error) << e.what() << "; the jobs that ended in " << finished.month
                           << " stay in the database meanwhile";
    return false;
  }
}

}  // namespace sublet::server
