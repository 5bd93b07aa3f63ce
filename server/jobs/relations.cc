#include "server/jobs/relations.h"

#include <algorithm>
#include <functional>
#include <span>

#include "base/log.h"
#include "server/jobs/sources.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {

Refusal unknown(JobId id) {
  const std::string subject = "job " + std::to_string(id);
  return Refusal(Refusal::Kind::kNotFound, "relation.unknown",
                 "there is no " + subject + ", which a job of the batch waits for",
                 "`sublet ls --all` lists the jobs that there are.", subject);
}

Refusal never(JobId id, const std::string& what) {
  const std::string subject = "job " + std::to_string(id);
  return Refusal(Refusal::Kind::kConflict, "relation.never",
                 "a job of the batch waits for " + subject + ", which " + what,
                 "Run that again first, or wait for its end only (after_any).", subject);
}

Refusal unreadable(const std::string& why) {
  return Refusal(Refusal::Kind::kUnavailable, "server.disk",
                 "how the jobs have ended for which the batch waits cannot be read now: " + why,
                 "Try again in a moment; the server's log says more.", "database");
}

Refusal too_many() {
  return Refusal(Refusal::Kind::kLimitExceeded, "relation.too_many",
                 "the batch waits for more than 10,000 jobs of other batches",
                 "Wait for the last of them only.", "batch");
}

using Changed = std::map<JobId, scheduling::JobRecord>;

// The record of a job that has ended as a turn has left it; `row`: as it is committed.
scheduling::JobRecord present(const Changed& changed, const JobRow& row, JobId id) {
  auto it = changed.upper_bound(id);
  if (it != changed.begin()) {
    const scheduling::JobRecord& record = (--it)->second;
    if (id - record.id < record.count) return record;
  }
  return row.job;
}

// Ids at most so far apart are looked up as one range: each range costs as much as some rows.
constexpr JobId kGap = 8;

// Of these jobs, which have ended, those of which anything is known.
void each_ended(const Changed& changed, Archive& archive, const std::set<JobId>& jobs,
                const std::function<void(JobId, const scheduling::JobRecord&)>& visit) {
  JobQuery query;
  for (const JobId id : jobs) {
    if (query.ids.empty() || id - query.ids.back().first > query.ids.back().count + kGap)
      query.ids.push_back({id, 1});
    else
      query.ids.back().count = id - query.ids.back().first + 1;
  }
  for (JobId after = 0; !jobs.empty();) {
    const JobPage page = archive.runs(query, after, 1000);
    for (const JobRow& row : page.rows)
      for (JobId id = row.job.id; id < row.job.id + row.job.count; ++id)
        if (jobs.contains(id)) visit(id, present(changed, row, id));
    if (page.next == 0) break;
    after = page.next;
  }
}

// Of these jobs. Asks the brain in several questions, because each holds it.
std::set<JobId> not_live(Pipeline& pipeline, const std::set<scheduling::JobRange>& jobs) {
  constexpr size_t kAsked = 1000;  // jobs in one question
  std::vector<JobId> all;
  for (const scheduling::JobRange& range : jobs)
    for (JobId id = range.first; id - range.first < range.count; ++id) all.push_back(id);
  std::set<JobId> ended;
  for (size_t next = 0; next < all.size(); next += kAsked) {
    const std::span group = std::span(all).subspan(next, std::min(kAsked, all.size() - next));
    std::vector<JobId> found;
    pipeline.ask([&](const scheduling::Pool& pool, Micros) {
      found.clear();  // it may be put again
      for (const JobId id : group)
        if (!pool.job(id)) found.push_back(id);
    });
    ended.insert(found.begin(), found.end());
  }
  return ended;
}

}  // namespace

void OtherJobs::add(const SpecRange& range) {
  const auto lists = lists_of(range.spec.waits_for);
  static_assert(lists.size() == kConditions);
  for (size_t condition = 0; condition < lists.size(); ++condition)
    for (const JobReference& jobs : *lists[condition].second) {
      if (jobs.of_this_batch || !ranges_[condition].emplace(jobs.first, jobs.count).second)
        continue;
      if (jobs.count > kOthersPerBatch || (jobs_ += jobs.count) > kOthersPerBatch) throw too_many();
    }
}

std::optional<std::vector<scheduling::LostDependence>> EndedOthers::lost(
    Turn& turn, Archive& archive, const std::vector<scheduling::UnclearDependence>& unclear,
    bool even_so) {
  std::set<JobId> unknown;
  for (const auto& one : unclear)
    for (const auto& range : one.gone)
      for (JobId id = range.first; id - range.first < range.count; ++id)
        if (unknown.size() < kAtATime && !known_.contains(id)) unknown.insert(id);
  const bool are_all = unknown.size() < kAtATime;
  even_so ? look_up_singly(turn, archive, unknown) : look_up(turn, archive, unknown);
  if (!are_all) return std::nullopt;
  std::vector<scheduling::LostDependence> lost;
  for (const auto& one : unclear)
    if (const JobId id = first_lost(one); id != 0)
      lost.push_back({one.dependence, id, known_.at(id).as});
  return lost;
}

void EndedOthers::look_up(Turn& turn, Archive& archive, const std::set<JobId>& jobs) {
  std::map<JobId, End> found;
  // What the database does not have any more counts as removed, too.
  for (const JobId id : jobs) found[id] = {};
  each_ended(turn.changes().jobs, archive, jobs, [&](JobId id, const scheduling::JobRecord& job) {
    found[id] = {job.state, job.has_started};
  });
  known_.merge(found);
}

void EndedOthers::look_up_singly(Turn& turn, Archive& archive, const std::set<JobId>& jobs) {
  for (const JobId id : jobs) {
    try {
      look_up(turn, archive, {id});
    } catch (const StoreError& e) {
      known_[id] = {};
      log(Severity::error) << "how job " << id
                           << " has ended cannot be read; to the jobs that wait "
                           << "for it, it counts as removed: " << e.what();
    }
  }
}

// 0: none.
JobId EndedOthers::first_lost(const scheduling::UnclearDependence& unclear) const {
  const bool is_start = unclear.dependence.condition == scheduling::After::kStarted;
  for (const auto& range : unclear.gone)
    for (JobId id = range.first; id - range.first < range.count; ++id) {
      const End& end = known_.at(id);
      if (end.as != scheduling::JobState::kDone && !(is_start && end.had_started)) return id;
    }
  return 0;
}

void name_by_ids(JobId first, SpecRange& range) {
  for (const auto& [name, list] : lists_of(range.spec.waits_for))
    for (JobReference& jobs : *list)
      if (jobs.of_this_batch) jobs = {false, first + jobs.first, jobs.count};
}

void Relations::find_ended(Pipeline& pipeline, QuestionGate& questions, const Caller& caller,
                           OtherJobs& others) const {
  for (const Condition condition : {Condition::kDone, Condition::kEnded, Condition::kStarted}) {
    std::set<JobId> ended = not_live(pipeline, others.of(condition));
    if (ended.empty()) continue;
    try {
      questions.ask(caller.user, [&] { require_ended(caller, ended, condition, {}); });
    } catch (const StoreError& e) {
      throw unreadable(e.what());
    }
    others.ended(condition) = std::move(ended);
  }
}

void Relations::settle(Turn& turn, const Caller& caller, JobId first, std::vector<SpecRange>& specs,
                       const OtherJobs& others) const {
  refusing([&] { check_dependences(specs); });
  for (SpecRange& range : specs) name_by_ids(first, range);
  require(turn, caller, others);
  settle_sources(turn, archive_, first, specs);
}

void Relations::require(Turn& turn, const Caller& caller, const OtherJobs& others) const {
  for (const Condition condition : {Condition::kDone, Condition::kEnded, Condition::kStarted}) {
    std::set<JobId> ended;  // since they were looked up
    for (const scheduling::JobRange& jobs : others.of(condition))
      require_live(turn, caller, jobs, condition, ended);
    for (const JobId id : others.ended(condition)) ended.erase(id);
    require_ended(caller, ended, condition, turn.changes().jobs);
  }
}

// Adds those that are not live to `ended`.
void Relations::require_live(Turn& turn, const Caller& caller, const scheduling::JobRange& jobs,
                             Condition condition, std::set<JobId>& ended) const {
  for (JobId id = jobs.first; id - jobs.first < jobs.count; ++id) {
    if (const auto job = turn.pool().job(id))
      require(caller, *job, id, condition);
    else
      ended.insert(id);
  }
}

void Relations::require_ended(const Caller& caller, const std::set<JobId>& ended,
                              Condition condition, const Changed& changed) const {
  std::set<JobId> unseen = ended;
  each_ended(changed, archive_, ended, [&](JobId id, const scheduling::JobRecord& job) {
    require(caller, job, id, condition);
    unseen.erase(id);
  });
  if (!unseen.empty()) throw unknown(*unseen.begin());
}

void Relations::require(const Caller& caller, const scheduling::JobRecord& job, JobId id,
                        Condition condition) const {
  access_.require_owner(caller, job.user, "job " + std::to_string(id));
  if (!scheduling::is_final(job.state) || condition == Condition::kEnded) return;
  if (job.state == scheduling::JobState::kDone) return;
  if (condition == Condition::kStarted && job.has_started) return;
  throw never(id, job.state == scheduling::JobState::kFailed ? "has failed" : "was removed");
}

}  // namespace sublet::server
