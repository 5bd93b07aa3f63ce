#include "server/jobs/relations.h"

#include <algorithm>
#include <set>
#include <tuple>

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

Refusal gone(const OutputOfJob& source) {
  const std::string subject = "job " + std::to_string(source.job);
  return Refusal(Refusal::Kind::kNotFound, "spool.removed",
                 "the output `" + source.name + "` of " + subject + " is kept no longer",
                 "Run that job again, or send the file.", subject);
}

// Refuses what is not a file that the job leaves whenever it is done.
void require_described(const JobDescription& job, const std::string& name) {
  for (const OutputFile& output : job.outputs)
    if (output.name == name && output.required) return;
  throw Refusal(Refusal::Kind::kInvalid, "relation.output",
                "`" + name + "` is an input, but no required output of job '" + job.name + "'",
                "Name it among that job's outputs, without patterns.", name);
}

// Finds the description of a job by its index in the batch.
class JobsOfBatch {
 public:
  explicit JobsOfBatch(const std::vector<SpecRange>& specs) : specs_(specs) {
    uint64_t jobs = 0;
    for (const SpecRange& range : specs) {
      firsts_.push_back(jobs);
      jobs += range.count;
    }
  }
  JobDescription description(uint64_t index) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), index);
    const auto at = static_cast<size_t>(after - firsts_.begin()) - 1;
    return spec_at(specs_[at], index - firsts_[at]);
  }

 private:
  const std::vector<SpecRange>& specs_;
  std::vector<uint64_t> firsts_;
};

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
  for (SpecRange& range : specs) wait_for_sources(range.spec);
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
  settle_sources(turn, first, specs);
}

void Relations::settle_sources(Turn& turn, JobId first, std::vector<SpecRange>& specs) const {
  const JobsOfBatch batch(specs);
  std::vector<FeedRow> feeds;
  JobId consumer = first;
  for (SpecRange& range : specs) {
    for (InputFile& input : range.spec.inputs) {
      OutputOfJob& source = input.source;
      if (!source.is_set()) continue;
      if (source.of_this_batch) {
        require_described(batch.description(source.job), source.name);
        source = {false, first + source.job, source.name};
      } else {
        require_output(turn, source);
      }
      feeds.push_back({source.job, source.name, consumer, range.count});
    }
    consumer += range.count;
  }
  auto& noted = turn.changes().feeds;
  noted.insert(noted.end(), feeds.begin(), feeds.end());
}

// Of a job of another batch: if it is done, its output must still be there.
void Relations::require_output(Turn& turn, const OutputOfJob& source) const {
  require_described(archive_.spec(source.job).value_or(JobDescription{}), source.name);
  // One that ended in this very transaction has just delivered it.
  if (turn.pool().job(source.job) || turn.changes().jobs.contains(source.job)) return;
  const auto file = archive_.output(source.job, FileKind::kOutput, source.name);
  const auto& dropped = turn.changes().dropped_files;
  const bool is_there =
      file && std::find(dropped.begin(), dropped.end(), file->id) == dropped.end();
  if (!is_there || archive_.outputs_removed_at(source.job) != 0) throw gone(source);
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
