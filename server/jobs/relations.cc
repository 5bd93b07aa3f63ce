#include "server/jobs/relations.h"

#include <array>
#include <set>
#include <tuple>

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

Refusal too_many() {
  return Refusal(Refusal::Kind::kLimitExceeded, "relation.too_many",
                 "the batch waits for more than 10,000 jobs of other batches",
                 "Wait for the last of them only.", "batch");
}

// The record of a job that has ended as this turn has left it; `row`: as it is committed.
scheduling::JobRecord present(Turn& turn, const JobRow& row, JobId id) {
  const auto& changed = turn.changes().jobs;
  auto it = changed.upper_bound(id);
  if (it != changed.begin()) {
    const scheduling::JobRecord& record = (--it)->second;
    if (id - record.id < record.count) return record;
  }
  return row.job;
}

}  // namespace

bool waits_for_others(const SpecRange& range) {
  for (const auto& [name, list] : lists_of(range.spec.waits_for))
    for (const JobReference& jobs : *list)
      if (!jobs.of_this_batch) return true;
  return false;
}

void name_by_ids(JobId first, SpecRange& range) {
  for (const auto& [name, list] : lists_of(range.spec.waits_for))
    for (JobReference& jobs : *list)
      if (jobs.of_this_batch) jobs = {false, first + jobs.first, jobs.count};
}

void Relations::settle(Turn& turn, const Caller& caller, JobId first,
                       std::vector<SpecRange>& specs) const {
  refusing([&] { check_dependences(specs); });
  std::set<std::tuple<JobId, uint64_t, size_t>> looked_up;
  std::array<std::set<JobId>, 3> ended;  // by condition
  uint64_t others = 0;
  for (SpecRange& range : specs) {
    const auto lists = lists_of(range.spec.waits_for);
    for (size_t condition = 0; condition < lists.size(); ++condition)
      for (const JobReference& jobs : *lists[condition].second) {
        if (jobs.of_this_batch || !looked_up.emplace(jobs.first, jobs.count, condition).second)
          continue;
        if (jobs.count > kOthersPerBatch || (others += jobs.count) > kOthersPerBatch)
          throw too_many();
        require_live(turn, caller, jobs, static_cast<Condition>(condition), ended[condition]);
      }
    name_by_ids(first, range);
  }
  for (size_t condition = 0; condition < ended.size(); ++condition)
    require_ended(turn, caller, ended[condition], static_cast<Condition>(condition));
  settle_sources(turn, archive_, first, specs);
}

// Adds those that are not live to `ended`.
void Relations::require_live(Turn& turn, const Caller& caller, const JobReference& jobs,
                             Condition condition, std::set<JobId>& ended) const {
  for (JobId id = jobs.first; id < jobs.first + jobs.count; ++id) {
    if (const auto job = turn.pool().job(id))
      require(caller, *job, id, condition);
    else
      ended.insert(id);
  }
}

void Relations::require_ended(Turn& turn, const Caller& caller, std::set<JobId> ended,
                              Condition condition) const {
  if (ended.empty()) return;
  JobQuery query;
  for (const JobId id : ended) query.ids.push_back({id, 1});
  for (JobId after = 0;;) {
    const JobPage page = archive_.runs(query, after, 1000);
    for (const JobRow& row : page.rows)
      for (JobId id = row.job.id; id < row.job.id + row.job.count; ++id) {
        require(caller, present(turn, row, id), id, condition);
        ended.erase(id);
      }
    if (page.next == 0) break;
    after = page.next;
  }
  if (!ended.empty()) throw unknown(*ended.begin());
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
