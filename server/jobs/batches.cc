// Submission in JobService: batches, from open to commit, and single jobs.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "job/codec.h"
#include "server/commit/crash_point.h"
#include "server/jobs/brain_form.h"
#include "server/jobs/draft.h"
#include "server/jobs/relations.h"
#include "server/jobs/service.h"
#include "server/refusal.h"
#include "server/request_key.h"

namespace sublet::server {
namespace {

constexpr size_t kNameLimit = 1024;  // octets; NAME_LIMIT of the IDL

constexpr uint64_t kJobsPerBatch = 1'000'000;
constexpr size_t kJobsPerAppend = 1'000;
// To commit a batch to which jobs are appended meanwhile.
constexpr int kMostTries = 100;

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
    changes.specs.push_back(spec_row(range, first));
    first += range.count;
  }
}

// Refuses jobs that no machine known to the pool could ever run.
void check_needs(const scheduling::Pool& pool, const AskedNeeds& needs) {
  for (const auto& [wanted, job] : needs) {
    const std::string why = pool.unsuitable(wanted);
    if (!why.empty())
      throw Refusal(Refusal::Kind::kConflict, "needs.unmet",
                    "job '" + job + "' could never run in this pool: " + why,
                    "Ask for less, or say --even-so (even_so = true) to wait for such a machine.",
                    job);
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

DraftRow JobService::draft_in(Turn& turn, BatchId id) {
  const auto pending = turn.changes().drafts.find(id);
  return pending != turn.changes().drafts.end() ? pending->second : archive_.draft(id);
}

// What was appended in this transaction counts already.
void JobService::check_room(Turn& turn, const std::string& user, uint64_t bytes) {
  if (!settings_.check_room) return;
  for (const PartRow& part : turn.changes().parts)
    if (turn.changes().drafts.at(part.batch).user == user) bytes += part.body.size();
  settings_.check_room(user, bytes);
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
    DraftRow draft = draft_in(turn, id);
    std::optional<PartRow> before = archive_.part(id, number);
    for (const auto& p : turn.changes().parts)
      if (p.batch == id && p.number == number) before = p;
    if (before && before->body == part.body) return;
    if (before)
      throw Refusal(Refusal::Kind::kConflict, "batch.number",
                    "append " + std::to_string(number) + " was already sent with other jobs",
                    "Number appends from 0.", subject);
    if (batch.committed) throw batch_committed(id);
    if (draft.jobs + part.jobs > kJobsPerBatch)
      throw Refusal(Refusal::Kind::kLimitExceeded, "batch.jobs",
                    "more than 1,000,000 jobs in a batch", "Split it.", subject);
    check_room(turn, batch.user, part.body.size());
    draft.user = batch.user;
    ++draft.parts;
    draft.jobs += part.jobs;
    draft.bytes += part.body.size();
    turn.changes().drafts[id] = draft;
    turn.changes().parts.push_back(part);
    batch.touched = turn.now();
    turn.changes().batches[id] = batch;
  });
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
void JobService::check_hours(Turn& turn, const std::string& user, std::set<std::string> hours,
                             const std::string& subject) {
  constexpr size_t kMostHours = 32;
  if (hours.empty()) return;
  hours.merge(turn.pool().hours_of(user));
  if (hours.size() <= kMostHours) return;
  throw Refusal(Refusal::Kind::kLimitExceeded, "hours.too_many",
                "the unfinished jobs of " + turn.pool().accounts().of(user) +
                    " would have more than 32 different `hours`",
                "Give jobs the same `hours`, or wait until some have ended.", subject);
}

// The ids of the jobs follow those that there are.
void JobService::settle_relations(Turn& turn, const Caller& caller, std::vector<SpecRange>& specs,
                                  const OtherJobs& others) {
  const JobId first = turn.pool().counters().next_job;
  Relations(archive_, access_).settle(turn, caller, first, specs, others);
}

// All jobs in this transaction.
JobId JobService::enter(Turn& turn, const BatchRow& batch, const std::vector<SpecRange>& specs) {
  EventJobs jobs(batch.user, true);
  for (const SpecRange& range : specs) jobs.add(range);
  scheduling::Submitted event{batch.id,
                              batch.user,
                              batch.submit_host,
                              {},
                              brain_form(batch.stop_when),
                              brain_form(batch.on_never)};
  if (batch.at_most < jobs.count()) event.at_most = batch.at_most;
  event.jobs = jobs.take();
  const JobId first = turn.apply(event).answer.first_job;
  add_specs(specs, first, turn.changes());
  return first;
}

// Only that the batch will have its jobs: they are entered by Entering.
JobId JobService::reserve(Turn& turn, const BatchRow& batch, const Contents& contents) {
  const scheduling::BatchReserved event{batch.id, batch.count, brain_form(batch.stop_when),
                                        batch.at_most < batch.count ? batch.at_most : 0};
  DraftRow draft = contents.draft;
  draft.user = batch.user;
  draft.bytes = 0;
  draft.entering = true;
  draft.gated = contents.gated;
  turn.changes().drafts[batch.id] = draft;
  return turn.apply(event).answer.first_job;
}

void JobService::commit_in(Turn& turn, const Caller& caller, BatchRow batch, Contents contents,
                           Committed& committed) {
  check_limited_batches(turn, batch);
  check_hours(turn, batch.user, std::move(contents.hours), "batch " + std::to_string(batch.id));
  batch.committed = true;
  batch.touched = turn.now();
  batch.count = contents.draft.jobs;
  if (contents.in_slices) {
    Relations(archive_, access_).require(turn, caller, contents.others);
    batch.first_job = reserve(turn, batch, contents);
  } else {
    check_needs(turn.pool(), contents.needs);
    settle_relations(turn, caller, contents.specs, contents.others);
    batch.first_job = enter(turn, batch, contents.specs);
    turn.changes().dropped_parts.push_back(batch.id);
  }
  turn.changes().batches[batch.id] = batch;
  committed.first = batch.first_job;
  committed.count = batch.count;
}

// Off the committer, before the batch is committed.
Contents JobService::contents_of(const Caller& caller, BatchId id) {
  const std::optional<BatchRow> batch = archive_.batch(id);
  if (!batch || batch->uid != caller.uid) throw batch_unknown(id);
  if (batch->committed) throw batch_committed(id);
  Contents contents = read_contents(archive_, *batch, settings_.slice);
  Relations(archive_, access_).find_ended(pipeline_, questions_, caller, contents.others);
  if (contents.in_slices)
    for (const auto& needs : contents.needs)
      pipeline_.ask([&](const scheduling::Pool& pool, Micros) { check_needs(pool, {needs}); });
  return contents;
}

// False: jobs were appended since the contents were read.
bool JobService::try_commit(const Caller& caller, const std::string& request, BatchId id,
                            Committed& committed) {
  const std::string key = request_key(caller.uid, request);
  const std::string digest = arguments_digest("commit_batch", std::to_string(id));
  Contents contents;
  std::optional<Refusal> refused;
  try {
    contents = contents_of(caller, id);
  } catch (const Refusal& refusal) {
    refused = refusal;  // unless this is a repeat, which gets its first answer
  }
  bool is_present = true;
  pipeline_.perform([&](Turn& turn) {
    if (auto answer = turn.answered(key, digest)) {
      committed.first = std::stoull(*answer);
      committed.count = std::stoull(answer->substr(answer->find(' ') + 1));
      return;
    }
    is_present = refused || draft_in(turn, id) == contents.draft;
    if (!is_present) return;
    if (refused) throw *refused;
    const BatchRow batch = batch_in(turn, caller, id);
    if (batch.committed) throw batch_committed(id);
    committed.is_entered = !contents.in_slices;
    commit_in(turn, caller, batch, std::move(contents), committed);
    turn.remember(key, digest,
                  std::to_string(committed.first) + " " + std::to_string(committed.count));
  });
  return is_present;
}

std::pair<JobId, uint64_t> JobService::commit_batch(const Caller& caller,
                                                    const std::string& request, BatchId id) {
  may_submit_();
  Committed committed;
  for (int tries = 0; !try_commit(caller, request, id, committed);)
    if (++tries == kMostTries)
      throw Refusal(
          Refusal::Kind::kConflict, "batch.changed",
          "jobs are being appended to batch " + std::to_string(id) + ": nothing was committed",
          "Commit it when all appends have been answered.", "batch " + std::to_string(id));
  if (!committed.is_entered) {
    crash_point("reserved");
    entering_.finish(id);
  }
  return {committed.first, committed.count};
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
  AskedNeeds needs;
  note_needs(specs[0].spec, needs);
  std::set<std::string> hours;
  if (!specs[0].spec.hours.empty()) hours.insert(specs[0].spec.hours);
  OtherJobs others;
  std::optional<Refusal> refused;
  try {
    others.add(specs[0]);
    Relations(archive_, access_).find_ended(pipeline_, questions_, caller, others);
  } catch (const Refusal& refusal) {
    refused = refusal;  // unless this is a repeat, which gets its first answer
  }
  JobId id = 0;
  pipeline_.perform([&](Turn& turn) {
    if (auto answer = turn.answered(key, digest)) {
      id = std::stoull(*answer);
      return;
    }
    if (refused) throw *refused;
    check_hours(turn, caller.user, hours, "hours");
    check_needs(turn.pool(), needs);
    settle_relations(turn, caller, specs, others);
    const BatchId batch = turn.apply(scheduling::BatchOpened{caller.user}).answer.batch;
    BatchRow row{batch, caller.uid, caller.user, spec.name, host, true, turn.now(), 0, 1};
    row.first_job = id = enter(turn, row, specs);
    turn.changes().batches[batch] = row;
    turn.remember(key, digest, std::to_string(id));
  });
  return id;
}

}  // namespace sublet::server
