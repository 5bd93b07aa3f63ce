#include "server/jobs/draft.h"

#include <algorithm>

#include "job/codec.h"
#include "job/dependences.h"
#include "job/stop_when.h"
#include "protocol/codec.h"
#include "server/jobs/brain_form.h"
#include "server/jobs/sources.h"
#include "server/refusal.h"

namespace sublet::server {

DraftReader::DraftReader(Archive& archive, const DraftRow& draft)
    : archive_(archive),
      batch_(draft.batch),
      parts_(draft.parts),
      part_(draft.next_part),
      skip_(draft.next_range) {}

SpecRange* DraftReader::next() {
  while (range_ == specs_.size()) {
    if (part_ == parts_) return nullptr;
    read_part();
  }
  return &specs_[range_++];
}

void DraftReader::read_part() {
  const std::string subject = "batch " + std::to_string(batch_);
  const auto part = archive_.part(batch_, part_);
  if (!part)
    throw Refusal(Refusal::Kind::kConflict, "batch.gap",
                  "append " + std::to_string(part_) + " is missing: nothing was committed",
                  "Send it, or discard the batch; appends are numbered from 0.", subject);
  try {
    specs_ = decode_specs(part->body);
  } catch (const protocol::Damaged& e) {
    throw Refusal(Refusal::Kind::kInvalid, "batch.damaged",
                  "data appended to " + subject + " as number " + std::to_string(part_) +
                      " is damaged in the database: " + e.what(),
                  "Submit the batch again.", subject);
  }
  ++part_;
  range_ = std::min<size_t>(std::exchange(skip_, 0), specs_.size());
}

uint64_t DraftReader::skip_part() {
  const auto part = archive_.part(batch_, part_++);
  const bool is_whole = std::exchange(skip_, 0) == 0;
  return part && is_whole ? part->jobs : 0;
}

namespace {
// Jobs of so many entries say what they run.
constexpr size_t kEntriesWithPrograms = 64;
}  // namespace

// From some entries on they are equal whatever they run: a long list of commands is stored like an
// array.
void EventJobs::add(const SpecRange& range) {
  scheduling::Submitted::Job job = brain_job(range.spec);
  if (with_programs_ && jobs_.size() < kEntriesWithPrograms)
    job.program = program_of(range.spec, user_);
  count_ += range.count;
  if (!jobs_.empty()) {
    job.count = jobs_.back().count;
    if (job == jobs_.back()) {
      jobs_.back().count += range.count;
      return;
    }
  }
  job.count = range.count;
  jobs_.push_back(std::move(job));
}

SpecRow spec_row(const SpecRange& range, JobId first) {
  return {first, range.count, range.spec.name, encode({&range, 1})};
}

void note_needs(const JobDescription& job, AskedNeeds& needs) {
  if (job.even_so || needs.size() == kNeedsLookedAt) return;
  scheduling::Requirements wanted = brain_job(job).needs;
  const auto same = [&](const auto& one) { return one.first == wanted; };
  if (std::any_of(needs.rbegin(), needs.rend(), same)) return;
  needs.emplace_back(std::move(wanted), job.name);
}

namespace {

// The inputs that were sent must have been sent with this batch.
void check_inputs(Archive& archive, const JobDescription& job, BatchId batch,
                  std::set<uint64_t>& seen) {
  for (const auto& input : job.inputs) {
    if (input.source.is_set() || !seen.insert(input.file).second) continue;
    const auto row = archive.file(input.file);
    if (!row || row->kind != FileKind::kInput || row->batch != batch)
      throw Refusal(Refusal::Kind::kInvalid, "batch.input",
                    "the input `" + input.name + "` was not sent with this batch",
                    "Upload it to this batch first.", input.name);
  }
}

std::vector<SpecRange> all_specs(Archive& archive, const DraftRow& draft) {
  std::vector<SpecRange> specs;
  DraftReader reader(archive, draft);
  while (SpecRange* range = reader.next()) specs.push_back(std::move(*range));
  return specs;
}

bool needs_others_outputs(const SpecRange& range) {
  return std::ranges::any_of(range.spec.inputs, [](const InputFile& input) {
    return input.source.is_set() && !input.source.of_this_batch;
  });
}

// Some of these jobs of a large batch wait for others.
void gate(std::vector<SpecRange> specs, Contents& contents) {
  if (std::ranges::any_of(specs, needs_others_outputs)) {
    contents.in_slices = false;
    contents.specs = std::move(specs);
    return;
  }
  refusing([&] { check_dependences(specs); });
  check_sources_within(specs);
  contents.gated = true;
}

}  // namespace

Contents read_contents(Archive& archive, const BatchRow& batch, const SliceSize& slice) {
  Contents contents;
  contents.draft = archive.draft(batch.id);
  std::set<uint64_t> inputs;
  StopWhenCheck stop(batch.stop_when);
  bool has_relations = false;
  EventJobs first(batch.user, true);  // until it is clear that they are too many for one slice
  contents.in_slices = contents.draft.bytes > slice.bytes;
  DraftReader reader(archive, contents.draft);
  while (SpecRange* range = reader.next()) {
    stop.add(*range);
    check_inputs(archive, range->spec, batch.id, inputs);
    if (!range->spec.hours.empty()) contents.hours.insert(range->spec.hours);
    note_needs(range->spec, contents.needs);
    contents.others.add(*range);
    has_relations = has_relations || !range->spec.waits_for.empty();
    if (contents.in_slices) continue;
    contents.in_slices = slice.is_full(first.entries(), contents.specs.size(), 0);
    first.add(*range);
    contents.specs.push_back(std::move(*range));
    if (contents.in_slices) contents.specs = {};
  }
  if (contents.draft.jobs == 0)
    throw Refusal(Refusal::Kind::kInvalid, "batch.empty", "the batch has no jobs",
                  "Append some first.", "batch " + std::to_string(batch.id));
  refusing([&] { stop.finish(); });
  if (contents.in_slices && has_relations) gate(all_specs(archive, contents.draft), contents);
  return contents;
}

}  // namespace sublet::server
