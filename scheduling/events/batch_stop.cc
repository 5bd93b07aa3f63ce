// Batches with a stop condition: counts job ends and removes the rest of the batch once
// the condition holds. Both happen in the event that ended the job, so no crash can
// separate them.
#include "scheduling/queries/text.h"
#include "scheduling/state.h"

namespace sublet::scheduling {
namespace {

// The condition that holds, or "". `left`: the awaited output that this job produced.
std::string what_holds(const BatchRecord& batch, const JobRecord& job, const std::string& left) {
  const std::string name = "job " + std::to_string(job.id);
  const auto reached = [&](uint64_t wanted, uint64_t count, const char* one, const char* several) {
    if (wanted == 0 || count < wanted) return std::string();
    if (wanted == 1) return name + one;
    return counted(count, "job") + several + ", the last is " + name;
  };
  if (!batch.stop_when.output.empty() && !left.empty()) return name + " left " + left;
  if (job.state == JobState::kFailed)
    return reached(batch.stop_when.failed, batch.failed, " failed", " failed");
  return reached(batch.stop_when.done, batch.done, " is done", " are done");
}

}  // namespace

void Pool::State::count_end(const Job& job, const std::string& left) {
  if (job.batch == nullptr) return;
  Batch& batch = *job.batch;
  ++(job.record.state == JobState::kDone ? batch.record.done : batch.record.failed);
  jobs.touch(batch);
  const std::string what = what_holds(batch.record, job.record, left);
  if (what.empty()) return;
  batch.record.stopped_by = job.record.id;
  for (const JobId id : batch.jobs)
    if (Job* other = jobs.live(id)) remove(*other, "the batch has stopped: " + what);
}

}  // namespace sublet::scheduling
