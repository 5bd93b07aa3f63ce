#include "server/jobs/relations.h"

#include <algorithm>
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

// The record of a job as this turn has left it; `row`: as it is committed.
scheduling::JobRecord present(Turn& turn, const JobRow& row, JobId id) {
  if (const auto live = turn.pool().job(id)) return *live;
  const auto& changed = turn.changes().jobs;
  auto it = changed.upper_bound(id);
  if (it != changed.begin()) {
    const scheduling::JobRecord& record = (--it)->second;
    if (id - record.id < record.count) return record;
  }
  return row.job;
}

}  // namespace

void Relations::settle(Turn& turn, const Caller& caller, JobId first,
                       std::vector<SpecRange>& specs) const {
  refusing([&] { check_dependences(specs); });
  std::set<std::tuple<JobId, uint64_t, size_t>> looked_up;
  uint64_t others = 0;
  for (SpecRange& range : specs) {
    const auto lists = lists_of(range.spec.waits_for);
    for (size_t condition = 0; condition < lists.size(); ++condition)
      for (JobReference& jobs : *lists[condition].second) {
        if (jobs.of_this_batch) {
          jobs = {false, first + jobs.first, jobs.count};
          continue;
        }
        if (!looked_up.emplace(jobs.first, jobs.count, condition).second) continue;
        if (jobs.count > kOthersPerBatch || (others += jobs.count) > kOthersPerBatch)
          throw too_many();
        require(turn, caller, jobs, static_cast<Condition>(condition));
      }
  }
  settle_sources(turn, archive_, first, specs);
}

void Relations::require(Turn& turn, const Caller& caller, const JobReference& jobs,
                        Condition condition) const {
  JobQuery query;
  query.ids = {{jobs.first, jobs.count}};
  const JobId end = jobs.first + jobs.count;
  JobId next = jobs.first;
  for (JobId after = 0;;) {
    const JobPage page = archive_.runs(query, after, 1000);
    for (const JobRow& row : page.rows) {
      if (row.job.id > next) throw unknown(next);
      for (const JobId row_end = std::min(row.job.id + row.job.count, end); next < row_end; ++next)
        require(turn, caller, row, next, condition);
    }
    if (page.next == 0) break;
    after = page.next;
  }
  if (next < end) throw unknown(next);
}

void Relations::require(Turn& turn, const Caller& caller, const JobRow& row, JobId id,
                        Condition condition) const {
  access_.require_owner(caller, row.job.user, "job " + std::to_string(id));
  const scheduling::JobRecord job = present(turn, row, id);
  if (!scheduling::is_final(job.state) || condition == Condition::kEnded) return;
  if (job.state == scheduling::JobState::kDone) return;
  if (condition == Condition::kStarted && job.has_started) return;
  throw never(id, job.state == scheduling::JobState::kFailed ? "has failed" : "was removed");
}

}  // namespace sublet::server
