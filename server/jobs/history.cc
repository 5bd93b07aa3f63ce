#include "server/jobs/history.h"

#include "server/commit/crash_point.h"

namespace sublet::server {
namespace {
// Few enough that other commits wait for no more than some ten milliseconds.
constexpr uint32_t kJobsPerSlice = 250;
constexpr int kSlicesPerRound = 40;
}  // namespace

JobHistory::JobHistory(Micros keep, Archive& archive, Pipeline& pipeline)
    : keep_(keep), archive_(archive), pipeline_(pipeline) {}

void JobHistory::move_old() {
  if (keep_ == 0) return;
  Micros now = 0;
  pipeline_.perform([&](Turn& turn) { now = turn.now(); });
  for (int i = 0; i < kSlicesPerRound; ++i) {
    const FinishedJobs finished = archive_.finished_jobs(after_, now - keep_, kJobsPerSlice);
    if (!finished.moved.jobs.empty()) {
      archive_.copy_to_file(finished);
      crash_point("moved");
      pipeline_.perform([&](Turn& turn) { turn.changes().moved_jobs = finished.moved; });
    }
    if (after_ == 0) return;
  }
}

}  // namespace sublet::server
