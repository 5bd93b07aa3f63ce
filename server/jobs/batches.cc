// Submission in JobService: batches, from open to commit, and single jobs.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "job/codec.h"
#include "protocol/codec.h"
#include "server/jobs/brain_form.h"
#include "server/jobs/relations.h"
#include "server/jobs/service.h"
#include "server/refusal.h"
#include "server/request_key.h"

namespace sublet::server {
namespace {

constexpr size_t kNameLimit = 1024;  // octets; NAME_LIMIT of the IDL

constexpr uint64_t kJobsPerBatch = 1'000'000;
constexpr size_t kJobsPerAppend = 1'000;

Refusal batch_unknown(BatchId id) {
  const std::string subject = "batch " + std::to_string(id);
  return Refusal(Refusal::Kind::kNotFound, "batch.unknown",
                 "there is no unfinished " + subject + " (they expire after one hour)",
                 "Open a new one.", subject);
}

Refusal batch_committed(BatchId id) {
  const std::string subject = "batch " + std::to_string(id);
  return Refusal(Refusal::Kind::kConflict, "batch.committed", subject + " is already committed",
                 "Open a new batch; `sublet rm --batch` removes its jobs.", subject);
}

void add_specs(const std::vector<SpecRange>& specs, JobId first, Changes& changes) {
  for (const auto& range : specs) {
    changes.specs.push_back(SpecRow{first, range.count, range.spec.name, encode({&range, 1})});
    first += range.count;
  }
}

// Jobs of so many entries say what they run.
constexpr size_t kEntriesWithPrograms = 64;

// Consecutive jobs that are equal for the brain become one entry. From some entries on that holds
// whatever they run: a long list of commands is stored like an array.
void add_brain_jobs(const std::vector<SpecRange>& specs, scheduling::Submitted& event) {
  for (const auto& range : specs) {
    scheduling::Submitted::Job job = brain_job(range.spec);
    if (event.jobs.size() < kEntriesWithPrograms) job.program = program_of(range.spec, event.user);
    if (!event.jobs.empty()) {
      scheduling::Submitted::Job& last = event.jobs.back();
      job.count = last.count;
      if (job == last) {
        last.count += range.count;
        continue;
      }
    }
    job.count = range.count;
    event.jobs.push_back(std::move(job));
  }
}

// So many different needs of a batch are looked at: each costs a look at every machine.
constexpr size_t kNeedsLookedAt = 64;

// Refuses jobs that no machine known to the pool could ever run, unless they are to wait.
void check_needs(const scheduling::Pool& pool, const std::vector<SpecRange>& specs) {
  std::vector<scheduling::Requirements> seen;
  for (const auto& range : specs) {
    if (range.spec.even_so) continue;
    const scheduling::Requirements needs = brain_job(range.spec).needs;
    if (std::find(seen.rbegin(), seen.rend(), needs) != seen.rend()) continue;
    if (seen.size() == kNeedsLookedAt) return;
    seen.push_back(needs);
    const std::string why = pool.unsuitable(needs);
    if (!why.empty())
      throw Refusal(Refusal::Kind::kConflict, "needs.unmet",
                    "job '" + range.spec.name + "' could never run in this pool: " + why,
                    "Ask for less, or say --even-so (even_so = true) to wait for such a machine.",
                    range.spec.name);
  }
}

void read_part(const PartRow& part, std::vector<SpecRange>& specs) {
  try {
    auto more = decode_specs(part.body);
    specs.insert(specs.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  } catch (const protocol::Damaged& e) {
    throw Refusal(Refusal::Kind::kInvalid, "batch.damaged",
                  "data appended to batch " + std::to_string(part.batch) + " as number " +
                      std::to_string(part.number) + " is damaged in the database: " + e.what(),
                  "Submit the batch again.", "batch " + std::to_string(part.batch));
  }
}

// The one form of what may be written in several, made on the caller's thread: the committer only
// compares it.
void settle(JobDescription& job) {
  if (!job.hours.empty()) settle_hours(job.hours);  // check_description found nothing wrong
}

}  // namespace

BatchId JobService::open_batch(const Caller& caller, const std::string& request,
                               const BatchRequest& batch) {
  require_name(caller);
  may_submit_();
  if (batch.name.size() > kNameLimit || batch.submit_host.size() > 256)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "the batch's name or host is too long",
                  "Shorten it.", "batch");
  const std::string key = request_key(caller.uid, request);
  std::string arguments = batch.name + "\n" + batch.submit_host;
  if (batch.at_most > 0) arguments += "\nat most " + std::to_string(batch.at_most);
  if (batch.on_never != OnNever::kHold) arguments += "\n" + on_never_name(batch.on_never);
  if (const StopWhen& when = batch.stop_when; when.is_set())
    arguments +=
        "\n" + std::to_string(when.done) + " " + std::to_string(when.failed) + " " + when.output;
  const std::string digest = arguments_digest("open_batch", arguments);
  BatchId id = 0;
  pipeline_.perform([&](Turn& turn) {
    if (auto answer = turn.answered(key, digest)) {
      id = std::stoull(*answer);
      return;
    }
    id = turn.apply(scheduling::BatchOpened{caller.user}).answer.batch;
    turn.changes().batches[id] = BatchRow{
        id,         caller.uid, caller.user, batch.name,      batch.submit_host, false,
        turn.now(), 0,          0,           batch.stop_when, batch.on_never,    batch.at_most};
    turn.remember(key, digest, std::to_string(id));
  });
  return id;
}

BatchRow JobService::batch_in(Turn& turn, const Caller& caller, BatchId id) {
  const Changes& changes = turn.changes();
  const auto& dropped = changes.dropped_batches;
  if (std::find(dropped.begin(), dropped.end(), id) != dropped.end()) throw batch_unknown(id);
  auto pending = changes.batches.find(id);
  std::optional<BatchRow> batch;
  if (pending != changes.batches.end())
    batch = pending->second;
  else
    batch = archive_.batch(id);
  if (!batch || batch->uid != caller.uid) throw batch_unknown(id);
  return *batch;
}

std::vector<PartRow> JobService::parts_in(Turn& turn, BatchId id) {
  std::vector<PartRow> parts = archive_.parts(id);
  for (const auto& part : turn.changes().parts)
    if (part.batch == id) parts.push_back(part);
  // Concurrent appends may arrive in any order.
  std::sort(parts.begin(), parts.end(),
            [](const PartRow& a, const PartRow& b) { return a.number < b.number; });
  for (uint32_t number = 0; number < parts.size(); ++number)
    if (parts[number].number != number)
      throw Refusal(Refusal::Kind::kConflict, "batch.gap",
                    "append " + std::to_string(number) + " is missing: nothing was committed",
                    "Send it, or discard the batch; appends are numbered from 0.",
                    "batch " + std::to_string(id));
  return parts;
}

void JobService::append(const Caller& caller, BatchId id, uint32_t number,
                        std::vector<SpecRange> specs) {
  may_submit_();
  const std::string subject = "batch " + std::to_string(id);
  if (specs.size() > kJobsPerAppend)
    throw Refusal(Refusal::Kind::kLimitExceeded, "batch.append",
                  "more than 1,000 descriptions in one append", "Append in smaller pieces.",
                  subject);
  PartRow part{id, number, 0, ""};
  for (size_t index = 0; index < specs.size(); ++index) {
    const std::string job = appended(index, number);
    wait_for_sources(specs[index].spec);
    refusing([&] {
      check_description(specs[index].spec, job);
      check_inputs_sent(specs[index].spec, job);
      check_axes(specs[index], job);
    });
    check_expressions(specs[index].spec, job);
    settle(specs[index].spec);
    part.jobs += std::min(specs[index].count, kJobsPerBatch + 1);
  }
  part.body = encode(specs);
  pipeline_.perform([&](Turn& turn) {
    BatchRow batch = batch_in(turn, caller, id);
    uint64_t jobs = part.jobs + archive_.jobs_of_parts(id);
    std::optional<PartRow> before = archive_.part(id, number);
    for (const auto& p : turn.changes().parts) {
      if (p.batch != id) continue;
      if (p.number == number) before = p;
      jobs += p.jobs;
    }
    if (before && before->body == part.body) return;
    if (before)
      throw Refusal(Refusal::Kind::kConflict, "batch.number",
                    "append " + std::to_string(number) + " was already sent with other jobs",
                    "Number appends from 0.", subject);
    if (batch.committed) throw batch_committed(id);
    if (jobs > kJobsPerBatch)
      throw Refusal(Refusal::Kind::kLimitExceeded, "batch.jobs",
                    "more than 1,000,000 jobs in a batch", "Split it.", subject);
    turn.changes().parts.push_back(part);
    batch.touched = turn.now();
    turn.changes().batches[id] = batch;
  });
}

void JobService::check_inputs(Turn& turn, const std::vector<SpecRange>& specs, BatchId batch) {
  std::set<uint64_t> seen;
  for (const auto& range : specs)
    for (const auto& input : range.spec.inputs) {
      if (input.source.is_set() || !seen.insert(input.file).second) continue;
      auto pending = turn.changes().files.find(input.file);
      std::optional<FileRow> row;
      if (pending != turn.changes().files.end())
        row = pending->second;
      else
        row = archive_.file(input.file);
      if (!row || row->kind != FileKind::kInput || row->batch != batch)
        throw Refusal(Refusal::Kind::kInvalid, "batch.input",
                      "the input `" + input.name + "` was not sent with this batch",
                      "Upload it to this batch first.", input.name);
    }
}

// Each of them is looked at when a place is given to the user.
void JobService::check_limited_batches(Turn& turn, const BatchRow& batch) {
  constexpr uint64_t kMostLimited = 100;
  if (batch.at_most == 0 || turn.pool().limited_batches(batch.user) < kMostLimited) return;
  throw Refusal(Refusal::Kind::kLimitExceeded, "batch.at_most",
                "100 unfinished batches of " + turn.pool().accounts().of(batch.user) +
                    " have an `at_most` already",
                "Wait until one of them has ended, put the jobs into one batch, or leave `at_most` "
                "out.",
                "batch " + std::to_string(batch.id));
}

// Jobs with other hours wait in a line of their own, which is looked at when a place is given.
void JobService::check_hours(Turn& turn, const std::string& user,
                             const std::vector<SpecRange>& specs, const std::string& subject) {
  constexpr size_t kMostHours = 32;
  std::set<std::string> hours;
  for (const SpecRange& range : specs)
    if (!range.spec.hours.empty()) hours.insert(range.spec.hours);
  if (hours.empty()) return;
  hours.merge(turn.pool().hours_of(user));
  if (hours.size() <= kMostHours) return;
  throw Refusal(Refusal::Kind::kLimitExceeded, "hours.too_many",
                "the unfinished jobs of " + turn.pool().accounts().of(user) +
                    " would have more than 32 different `hours`",
                "Give jobs the same `hours`, or wait until some have ended.", subject);
}

void JobService::commit_in(Turn& turn, const Caller& caller, BatchRow batch,
                           std::pair<JobId, uint64_t>* range) {
  std::vector<SpecRange> specs;
  for (const auto& part : parts_in(turn, batch.id)) read_part(part, specs);
  if (specs.empty())
    throw Refusal(Refusal::Kind::kInvalid, "batch.empty", "the batch has no jobs",
                  "Append some first.", "batch " + std::to_string(batch.id));
  check_inputs(turn, specs, batch.id);
  refusing([&] { check_stop_when(batch.stop_when, specs); });
  check_limited_batches(turn, batch);
  check_hours(turn, batch.user, specs, "batch " + std::to_string(batch.id));
  check_needs(turn.pool(), specs);
  Relations(archive_, access_).settle(turn, caller, turn.pool().counters().next_job, specs);
  scheduling::Submitted event{batch.id,
                              batch.user,
                              batch.submit_host,
                              {},
                              brain_form(batch.stop_when),
                              brain_form(batch.on_never)};
  add_brain_jobs(specs, event);
  const auto add = [](uint64_t sum, const auto& job) { return sum + job.count; };
  const uint64_t count = std::accumulate(event.jobs.begin(), event.jobs.end(), uint64_t{0}, add);
  if (batch.at_most < count) event.at_most = batch.at_most;
  *range = {turn.apply(event).answer.first_job, count};
  add_specs(specs, range->first, turn.changes());
  batch.committed = true;
  batch.touched = turn.now();
  batch.first_job = range->first;
  batch.count = range->second;
  auto& parts = turn.changes().parts;
  std::erase_if(parts, [&](const PartRow& part) { return part.batch == batch.id; });
  turn.changes().batches[batch.id] = batch;
  turn.changes().dropped_parts.push_back(batch.id);
}

std::pair<JobId, uint64_t> JobService::commit_batch(const Caller& caller,
                                                    const std::string& request, BatchId id) {
  may_submit_();
  const std::string key = request_key(caller.uid, request);
  const std::string digest = arguments_digest("commit_batch", std::to_string(id));
  std::pair<JobId, uint64_t> range;
  pipeline_.perform([&](Turn& turn) {
    if (auto answer = turn.answered(key, digest)) {
      range.first = std::stoull(*answer);
      range.second = std::stoull(answer->substr(answer->find(' ') + 1));
      return;
    }
    const BatchRow batch = batch_in(turn, caller, id);
    if (batch.committed) throw batch_committed(id);
    commit_in(turn, caller, batch, &range);
    turn.remember(key, digest, std::to_string(range.first) + " " + std::to_string(range.second));
  });
  return range;
}

void JobService::discard_batch(const Caller& caller, BatchId id) {
  pipeline_.perform([&](Turn& turn) {
    if (batch_in(turn, caller, id).committed) throw batch_committed(id);
    turn.changes().batches.erase(id);
    turn.changes().dropped_batches.push_back(id);
    turn.changes().dropped_parts.push_back(id);
  });
}

JobId JobService::submit(const Caller& caller, const std::string& request, const std::string& host,
                         const JobDescription& spec) {
  require_name(caller);
  may_submit_();
  refusing([&] { check_description(spec, "the job"); });
  check_expressions(spec, "the job");
  if (!spec.inputs.empty())
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "a job with inputs must be in a batch",
                  "Open a batch, upload, append, commit.", "inputs");
  if (host.size() > 256)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "the host's name is too long",
                  "Shorten it.", "submit_host");
  std::vector<SpecRange> specs = {SpecRange{spec, false, 0, 1}};
  settle(specs[0].spec);
  const std::string key = request_key(caller.uid, request);
  const std::string digest = arguments_digest("submit", host + "\n" + encode(specs));
  JobId id = 0;
  pipeline_.perform([&](Turn& turn) {
    if (auto answer = turn.answered(key, digest)) {
      id = std::stoull(*answer);
      return;
    }
    check_hours(turn, caller.user, specs, "hours");
    check_needs(turn.pool(), specs);
    Relations(archive_, access_).settle(turn, caller, turn.pool().counters().next_job, specs);
    const BatchId batch = turn.apply(scheduling::BatchOpened{caller.user}).answer.batch;
    scheduling::Submitted event{batch, caller.user, host, {}};
    add_brain_jobs(specs, event);
    id = turn.apply(event).answer.first_job;
    add_specs(specs, id, turn.changes());
    turn.changes().batches[batch] =
        BatchRow{batch, caller.uid, caller.user, spec.name, host, true, turn.now(), id, 1};
    turn.remember(key, digest, std::to_string(id));
  });
  return id;
}

}  // namespace sublet::server
