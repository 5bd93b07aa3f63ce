// Jobs that wait for others: what follows for them from an event, in the apply of that event.
#include <algorithm>
#include <set>

#include "scheduling/state.h"

namespace sublet::scheduling {

namespace {
// Looking at the record of a job that is waited for takes about a hundredth of the time of an
// entry.
constexpr uint64_t kRecordsAnEntry = 100;
}  // namespace

void Pool::State::on(const RelationsBegun& event) {
  const auto [dependents, next] = relations.gated(event.jobs, event.most);
  changes.answer().first_job = next;
  uint64_t records = 0;
  for (Dependent* dependent : dependents) {
    if (records / kRecordsAnEntry >= event.most) {
      changes.answer().first_job = dependent->record.jobs.first;
      return;
    }
    if (dependent->record.gate == Gate::kEntering) records += begin_relation(*dependent, &event);
    if (event.opens) relations.open(*dependent);
  }
}

uint64_t Pool::State::begin_relation(Dependent& dependent, const RelationsBegun* begun) {
  uint64_t live = 0, records = 0;
  jobs.each_live(dependent.record.jobs,
                 [&](const Job&, const JobRange& part) { live += part.count; });
  const bool is_gated = dependent.record.gate == Gate::kEntering;
  relations.begin(dependent, live, [&](const Dependence& dependence) {
    if (is_gated)
      if (const LostDependence found = lost(dependence, *begun, records); found.by != 0)
        return RelationBook::Seen{0, found.by, found.as};
    return RelationBook::Seen{unmet(dependence, records)};
  });
  return records;
}

LostDependence Pool::State::lost(const Dependence& dependence, const RelationsBegun& begun,
                                 uint64_t& records) const {
  if (dependence.condition == After::kEnded) return {dependence};
  const JobRange& range = dependence.jobs;
  if (range.first < begun.first) {
    const auto same = [&](const LostDependence& one) { return one.dependence == dependence; };
    const auto found = std::ranges::find_if(begun.lost, same);
    return found == begun.lost.end() ? LostDependence{dependence} : *found;
  }
  // Before the gate opens no job of the batch is started: what of it is missing was removed.
  for (JobId id = range.first; id - range.first < range.count; ++records) {
    const Job* job = jobs.with(id);
    if (job == nullptr) return {dependence, id, JobState::kRemoved};
    id = job->record.id + job->record.count;
  }
  return {dependence};
}

std::vector<UnclearDependence> Pool::unclear(JobId first, const JobRange& jobs,
                                             uint64_t most) const {
  std::set<Dependence> others;
  for (const Dependent* dependent : state_->relations.gated(jobs, most).first) {
    if (dependent->record.gate != Gate::kEntering) continue;
    for (const Dependence& dependence : dependent->record.on)
      if (dependence.jobs.first < first && dependence.condition != After::kEnded &&
          !state_->relations.is_awaited(dependence))
        others.insert(dependence);
  }
  std::vector<UnclearDependence> found;
  for (const Dependence& dependence : others) {
    UnclearDependence one{dependence};
    JobId next = dependence.jobs.first;
    const auto note_gone = [&](JobId until) {
      if (until > next) one.gone.push_back({next, until - next});
    };
    state_->jobs.each_live(dependence.jobs, [&](const Job&, const JobRange& part) {
      note_gone(part.first);
      next = part.first + part.count;
    });
    note_gone(dependence.jobs.first + dependence.jobs.count);
    if (!one.gone.empty()) found.push_back(std::move(one));
  }
  return found;
}

uint64_t Pool::State::unmet(const Dependence& dependence, uint64_t& records) {
  uint64_t unmet = 0, live = 0;
  jobs.each_live(dependence.jobs, [&](const Job& job, const JobRange& part) {
    ++records;
    live += part.count;
    if (dependence.condition == After::kStarted && job.record.has_started) return;
    unmet += part.count;
    if (job.waits_for != nullptr && job.waits_for->is_lost()) relations.note_stuck(part);
  });
  records += dependence.jobs.count - live;  // each_live looks for each of the others
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
