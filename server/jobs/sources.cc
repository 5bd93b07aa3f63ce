#include "server/jobs/sources.h"

#include <map>
#include <set>
#include <string>

#include "server/refusal.h"

namespace sublet::server {
namespace {

using Names = std::set<std::string>;
using NamesByJob = std::map<uint64_t, Names>;

Refusal no_output(const std::string& job, const std::string& name) {
  return Refusal(Refusal::Kind::kInvalid, "relation.output",
                 "`" + name + "` is an input, but no required output of job '" + job + "'",
                 "Name it among that job's outputs, without patterns.", name);
}

Refusal gone(JobId job, const std::string& name) {
  const std::string subject = "job " + std::to_string(job);
  return Refusal(Refusal::Kind::kNotFound, "spool.removed",
                 "the output `" + name + "` of " + subject + " is kept no longer",
                 "Run that job again, or send the file.", subject);
}

// Refuses names that are not files which the job leaves whenever it is done.
void require_described(const SpecRange& range, uint64_t offset, const Names& names) {
  Names required;
  for (OutputFile& output : outputs_at(range, offset))
    if (output.required) required.insert(std::move(output.name));
  for (const std::string& name : names)
    if (!required.contains(name)) throw no_output(range.spec.name, name);
}

// The outputs that are inputs of the batch, by the job that leaves them, so that each job is
// looked at once. Jobs of the batch by their index in it if `of_this_batch`, else by their ids.
NamesByJob sources_of(const std::vector<SpecRange>& specs, bool of_this_batch) {
  NamesByJob sources;
  for (const SpecRange& range : specs)
    for (const InputFile& input : range.spec.inputs)
      if (input.source.is_set() && input.source.of_this_batch == of_this_batch)
        sources[input.source.job].insert(input.source.name);
  return sources;
}

// Checks outputs of jobs of other batches.
class OthersOutputs {
 public:
  OthersOutputs(Turn& turn, Archive& archive)
      : turn_(turn),
        archive_(archive),
        dropped_(turn.changes().dropped_files.begin(), turn.changes().dropped_files.end()) {}

  // If the job is done, they must still be there.
  void require(JobId job, const Names& names) const {
    const auto place = archive_.spec_place(job);
    if (!place) throw no_output(std::to_string(job), *names.begin());
    require_described(*place->range, place->offset, names);
    // One that ended in this very transaction has just delivered them.
    if (turn_.pool().job(job) || turn_.changes().jobs.contains(job)) return;
    const Names kept = kept_of(job);
    for (const std::string& name : names)
      if (!kept.contains(name)) throw gone(job, name);
  }

 private:
  Names kept_of(JobId job) const {
    Names kept;
    if (archive_.outputs_removed_at(job) != 0) return kept;
    for (FileRow& file : archive_.outputs(job))
      if (file.kind == FileKind::kOutput && !dropped_.contains(file.id))
        kept.insert(std::move(file.name));
    return kept;
  }

  Turn& turn_;
  Archive& archive_;
  const std::set<uint64_t> dropped_;  // by this transaction
};

}  // namespace

void check_sources_within(const std::vector<SpecRange>& specs) {
  auto range = specs.begin();
  uint64_t first = 0;  // of the range, by its index in the batch
  for (const auto& [job, names] : sources_of(specs, true)) {
    for (; job - first >= range->count; ++range) first += range->count;
    require_described(*range, job - first, names);
  }
}

void note_feeds(JobId first, JobId consumer, SpecRange& range, std::vector<FeedRow>& feeds) {
  for (InputFile& input : range.spec.inputs) {
    OutputOfJob& source = input.source;
    if (!source.is_set()) continue;
    if (source.of_this_batch) source = {false, first + source.job, source.name};
    feeds.push_back({source.job, source.name, consumer, range.count});
  }
}

void settle_sources(Turn& turn, Archive& archive, JobId first, std::vector<SpecRange>& specs) {
  check_sources_within(specs);
  const OthersOutputs others(turn, archive);
  for (const auto& [job, names] : sources_of(specs, false)) others.require(job, names);
  JobId consumer = first;
  for (SpecRange& range : specs) {
    note_feeds(first, consumer, range, turn.changes().feeds);
    consumer += range.count;
  }
}

}  // namespace sublet::server
