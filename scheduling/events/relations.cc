// Jobs that wait for others: what follows for them from an event, in the apply of that event.
#include "scheduling/state.h"

namespace sublet::scheduling {

void Pool::State::begin_relation(Dependent& dependent) {
  uint64_t live = 0;
  jobs.each_live(dependent.record.jobs,
                 [&](const Job&, const JobRange& part) { live += part.count; });
  relations.begin(dependent, live,
                  [this](const Dependence& dependence) { return unmet(dependence); });
}

uint64_t Pool::State::unmet(const Dependence& dependence) {
  uint64_t unmet = 0;
  jobs.each_live(dependence.jobs, [&](const Job& job, const JobRange& part) {
    if (dependence.condition == After::kStarted && job.record.has_started) return;
    unmet += part.count;
    if (job.waits_for != nullptr && job.waits_for->is_lost()) relations.note_stuck(part);
  });
  return unmet;
}

// Bounded by the number of jobs that are concerned: the closure of a job's end is a loop over
// consequences, which are noted and not nested.
void Pool::State::settle_relations() {
  while (const auto consequence = relations.next()) {
    for (Job* job : jobs.split_out(consequence->jobs)) {
      if (job->waits_for == nullptr) continue;
      // Who waits for those that are removed is told by their ends.
      if (consequence->never == OnNever::kHold)
        relations.note_stuck({job->record.id, job->record.count});
      if (!consequence->never)
        jobs.make_ready(*job);
      else if (job->record.state == JobState::kWaiting || consequence->never == OnNever::kRemove)
        give_up(*job, *job->waits_for);
    }
  }
}

// Holds or removes a job that can never run, and says why.
void Pool::State::give_up(Job& job, const Dependent& dependent) {
  const std::string why = loss_text(dependent.record);
  if (dependent.record.on_never == OnNever::kRemove)
    return remove(job, "it could never run: " + why);
  job.record.reason = "held: it can never run: " + why;
  jobs.touch(job);
  if (job.record.state != JobState::kHeld) jobs.set_state(job, JobState::kHeld, EndReason::kHeld);
}

}  // namespace sublet::scheduling
