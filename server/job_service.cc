#include "server/job_service.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "server/codec.h"
#include "server/refusal.h"
#include "server/request_key.h"
#include "server/stop_when.h"

namespace sublet::server {
namespace {

constexpr uint64_t kJobsPerBatch = 1'000'000;
constexpr size_t kJobsPerAppend = 1'000;
constexpr uint32_t kWaiters = 256;        // held changes_since calls
constexpr int64_t kLongestHold = 10'000;  // ms
constexpr uint32_t kChangesPerPage = 1'000;

Refusal batch_unknown(BatchId id) {
  const std::string subject = "batch " + std::to_string(id);
  return Refusal(Refusal::Kind::kNotFound, "batch.unknown",
                 "there is no unfinished " + subject + " (they expire after one hour)",
                 "Open a new one.", subject);
}

Refusal job_unknown(JobId id) {
  const std::string subject = "job " + std::to_string(id);
  return Refusal(Refusal::Kind::kNotFound, "job.unknown", "there is no " + subject,
                 "See `sublet ls --all`.", subject);
}

Refusal batch_committed(BatchId id) {
  const std::string subject = "batch " + std::to_string(id);
  return Refusal(Refusal::Kind::kConflict, "batch.committed", subject + " is committed already",
                 "Open a new batch; `sublet rm --batch` removes its jobs.", subject);
}

scheduling::Submitted::Job brain_job(const JobSpec& spec) {
  scheduling::Submitted::Job job;
  job.needs = spec.needs;
  job.needs.platforms = platforms_of(spec);
  // What is kept resident is needed, too.
  job.needs.memory = std::max(spec.needs.memory, spec.limits.memory);
  job.priority = spec.priority;
  job.retries = spec.retries;
  return job;
}

void add_specs(const std::vector<SpecRange>& specs, JobId first, Changes& changes) {
  for (const auto& range : specs) {
    changes.specs.push_back(SpecRow{first, range.count, range.spec.name, encode({range})});
    first += range.count;
  }
}

// Neighbours that the brain cannot tell apart are one entry, whatever they run: a
// list of commands is kept as an array is.
void add_brain_jobs(const std::vector<SpecRange>& specs, scheduling::Submitted& event) {
  for (const auto& range : specs) {
    scheduling::Submitted::Job job = brain_job(range.spec);
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

// That it is there, whose, and in which state since when.
JobRow what_others_see(const JobRow& row) {
  JobRow shown;
  shown.job.id = row.job.id;
  shown.job.count = row.job.count;
  shown.job.user = row.job.user;
  shown.job.state = row.job.state;
  shown.job.submitted = row.job.submitted;
  shown.job.changed = row.job.changed;
  return shown;
}

}  // namespace

JobService::JobService(Pipeline& pipeline, Archive& archive, Sessions& sessions, Access& access,
                       std::function<void()> may_submit, size_t most_controlled)
    : pipeline_(pipeline),
      archive_(archive),
      sessions_(sessions),
      access_(access),
      may_submit_(std::move(may_submit)),
      most_controlled_(most_controlled),
      last_change_(archive.last_change()) {}

BatchId JobService::open_batch(const Caller& caller, const std::string& request,
                               const BatchRequest& batch) {
  require_name(caller);
  may_submit_();
  if (batch.name.size() > 4096 || batch.submit_host.size() > 256)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "the batch's name or host is too long",
                  "Shorten it.", "batch");
  const std::string key = request_key(caller.uid, request);
  std::string arguments = batch.name + "\n" + batch.submit_host;
  if (const scheduling::StopWhen& when = batch.stop_when; when.is_set())
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
    turn.changes().batches[id] =
        BatchRow{id,    caller.uid, caller.user, batch.name, batch.submit_host,
                 false, turn.now(), 0,           0,          batch.stop_when};
    turn.remember(key, digest, std::to_string(id));
  });
  return id;
}

// Slots run under user ids without a name; the next tenant of a slot is another
// user's job, and must not own what the one before it submitted.
void JobService::require_name(const Caller& caller) const {
  if (caller.named) return;
  throw Refusal(Refusal::Kind::kNotPermitted, "caller.nameless",
                "user id " + std::to_string(caller.uid) + " has no name here",
                "Submit from an account with a password entry.", caller.user);
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
    const std::string job = "job " + std::to_string(index) + " of append " + std::to_string(number);
    check_spec(specs[index].spec, job);
    check_axes(specs[index], job);
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
                    "append " + std::to_string(number) + " was made before, with other jobs",
                    "Count appends from 0, one up each.", subject);
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
      if (!seen.insert(input.file).second) continue;
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

namespace {

void add_specs(const PartRow& part, std::vector<SpecRange>& specs) {
  try {
    auto more = decode_specs(part.body);
    specs.insert(specs.end(), more.begin(), more.end());
  } catch (const DamagedRow& e) {
    throw Refusal(Refusal::Kind::kInvalid, "batch.damaged",
                  "what was appended to batch " + std::to_string(part.batch) + " as number " +
                      std::to_string(part.number) + " is damaged in the database: " + e.what(),
                  "Submit the batch again.", "batch " + std::to_string(part.batch));
  }
}

}  // namespace

void JobService::commit_in(Turn& turn, BatchRow batch, std::pair<JobId, uint64_t>* range) {
  std::vector<SpecRange> specs;
  for (const auto& part : parts_in(turn, batch.id)) add_specs(part, specs);
  if (specs.empty())
    throw Refusal(Refusal::Kind::kInvalid, "batch.empty", "the batch has no jobs",
                  "Append some first.", "batch " + std::to_string(batch.id));
  check_inputs(turn, specs, batch.id);
  check_stop_when(batch.stop_when, specs);
  scheduling::Submitted event{batch.id, batch.user, batch.submit_host, {}, batch.stop_when};
  add_brain_jobs(specs, event);
  const auto count = [](uint64_t sum, const auto& job) { return sum + job.count; };
  *range = {turn.apply(event).answer.first_job,
            std::accumulate(event.jobs.begin(), event.jobs.end(), uint64_t{0}, count)};
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
    commit_in(turn, batch, &range);
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
                         const JobSpec& spec) {
  require_name(caller);
  may_submit_();
  check_spec(spec, "the job");
  if (!spec.inputs.empty())
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "a job with inputs needs a batch",
                  "Open a batch, upload, append, commit.", "inputs");
  if (host.size() > 256)
    throw Refusal(Refusal::Kind::kInvalid, "field.invalid", "the host's name is too long",
                  "Shorten it.", "submit_host");
  const std::vector<SpecRange> specs = {SpecRange{spec, false, 0, 1}};
  const std::string key = request_key(caller.uid, request);
  const std::string digest = arguments_digest("submit", host + "\n" + encode(specs));
  JobId id = 0;
  pipeline_.perform([&](Turn& turn) {
    if (auto answer = turn.answered(key, digest)) {
      id = std::stoull(*answer);
      return;
    }
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

// The unfinished jobs that the query names, all of which must be the caller's.
std::vector<scheduling::JobRange> JobService::reach(const Caller& caller, const JobQuery& query,
                                                    uint64_t* reached) {
  std::vector<scheduling::JobRange> ids;
  JobId after = 0;
  do {
    const JobPage page = archive_.runs(query, after, 1000);
    for (const auto& row : page.rows) {
      const scheduling::JobRecord& job = row.job;
      access_.require_owner(caller, job.user, "job " + std::to_string(job.id));
      *reached += job.count;
      if (!scheduling::is_final(job.state)) ids.emplace_back(job.id, job.count);
    }
    if (ids.size() > most_controlled_)
      throw Refusal(Refusal::Kind::kLimitExceeded, "control.too_many",
                    "more than " + std::to_string(most_controlled_) +
                        " separate jobs are meant; nothing was changed",
                    "Name fewer at a time: by batch, by ids or by state.", "filter");
    after = page.next;
  } while (after != 0);
  return ids;
}

ControlResult JobService::control(const Caller& caller, const std::string& request, Action action,
                                  const JobQuery& query) {
  require_name(caller);
  if (query.ids.empty() && !query.batch && query.user.empty() && query.states.empty())
    throw Refusal(Refusal::Kind::kInvalid, "filter.empty", "no jobs are named",
                  "Give ids, a batch, a user or a state.", "filter");
  constexpr const char* kNames[] = {"remove", "hold", "release"};
  const std::string key = request_key(caller.uid, request);
  uint64_t reached = 0;
  const std::vector<scheduling::JobRange> ids = reach(caller, query, &reached);
  if (reached == 0 && query.ids.size() == 1 && query.ids[0].count == 1 &&
      !archive_.job(query.ids[0].first))
    throw job_unknown(query.ids[0].first);
  std::string named;
  for (const auto& range : query.ids)
    named += std::to_string(range.first) + "+" + std::to_string(range.count) + ",";
  for (uint32_t state : query.states) named += " " + std::to_string(state);
  named += query.unfinished_only ? " unfinished " : " all ";
  if (query.stopped != JobQuery::Stopped::kAny)
    named += query.stopped == JobQuery::Stopped::kOnly ? "stopped " : "not stopped ";
  const std::string digest = arguments_digest(
      kNames[static_cast<int>(action)], named + std::to_string(query.batch) + " " + query.user);
  ControlResult result;
  pipeline_.perform([&](Turn& turn) {
    if (auto answer = turn.answered(key, digest)) {
      result.changed = std::stoull(*answer);
      result.unchanged = std::stoull(answer->substr(answer->find(' ') + 1));
      return;
    }
    scheduling::Answer answer;
    // What was read may have changed state since: only those that are still in one asked for.
    std::vector<scheduling::JobState> only_in;
    for (const uint32_t state : query.states)
      only_in.push_back(static_cast<scheduling::JobState>(state));
    if (action == Action::kRemove)
      answer = turn.apply(scheduling::JobsRemoved{ids, only_in, caller.user}).answer;
    if (action == Action::kHold)
      answer = turn.apply(scheduling::JobsHeld{ids, only_in, caller.user}).answer;
    if (action == Action::kRelease)
      answer = turn.apply(scheduling::JobsReleased{ids, only_in}).answer;
    result.changed = answer.changed;
    result.unchanged = reached - answer.changed;
    turn.remember(key, digest,
                  std::to_string(result.changed) + " " + std::to_string(result.unchanged));
  });
  return result;
}

JobPage JobService::list(const Caller& caller, const JobQuery& query, JobId after, uint32_t limit) {
  if (limit < 1 || limit > 1000)
    throw Refusal(Refusal::Kind::kInvalid, "limit.range", "a limit outside 1 to 1,000",
                  "Give one inside.", "limit");
  JobPage page = query.runs ? archive_.described_runs(query, after, limit)
                            : archive_.jobs(query, after, limit);
  for (auto& row : page.rows) {
    if (!access_.owns(caller, row.job.user)) row = what_others_see(row);
  }
  return page;
}

std::vector<std::pair<uint32_t, uint64_t>> JobService::count(const Caller&, const JobQuery& query) {
  return archive_.count(query);
}

JobDetails JobService::show(const Caller& caller, JobId id) {
  JobDetails details;
  auto row = archive_.job(id);
  if (!row) throw job_unknown(id);
  access_.require_owner(caller, row->job.user, "job " + std::to_string(id));
  details.row = *row;
  details.spec = archive_.spec(id).value_or(JobSpec{});
  details.attempts = archive_.attempts(id);
  details.outputs = archive_.outputs(id);
  details.outputs_removed = archive_.outputs_removed_at(id);
  if (scheduling::is_final(row->job.state)) return details;
  std::optional<scheduling::Outlook> outlook;
  Micros now = 0;
  pipeline_.perform([&](Turn& turn) {
    if (turn.pool().job(id)) details.row.job.reason = turn.pool().why(id, turn.now());
    outlook = turn.pool().outlook(id);
    now = turn.now();
  });
  if (outlook) details.forecast = start_forecast(archive_, *outlook, now);
  return details;
}

int32_t JobService::progress(const scheduling::JobRecord& job) const {
  if (job.state != scheduling::JobState::kRunning && job.state != scheduling::JobState::kPlaced)
    return job.state == scheduling::JobState::kDone ? 1'000'000 : -1;
  auto status = sessions_.status({job.id, job.attempts});
  return status ? status->progress_ppm : -1;
}

ChangeList JobService::read_changes(const std::string& user, uint64_t since) {
  ChangeList list;
  list.last = archive_.last_change();
  list.items = archive_.changes(since, user, kChangesPerPage);
  if (!list.items.empty()) list.last = std::max(list.last, list.items.back().number);
  const uint64_t first = archive_.first_change();
  list.gap = first > since + 1;
  if (list.items.size() == kChangesPerPage) list.last = list.items.back().number;
  return list;
}

ChangeList JobService::changes_since(const Caller& caller, uint64_t since, int64_t hold_ms) {
  if (since == 0) return ChangeList{{}, archive_.last_change(), false};
  const std::string user = caller.administrator ? "" : caller.user;
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(std::clamp<int64_t>(hold_ms, 0, kLongestHold));
  while (true) {
    ChangeList list = read_changes(user, since);
    if (!list.items.empty() || list.gap) return list;
    std::unique_lock lock(mutex_);
    if (stopping_ || waiting_ >= kWaiters) return list;
    const uint64_t seen = list.last;
    ++waiting_;
    const bool more =
        grown_.wait_until(lock, until, [&] { return stopping_ || last_change_ > seen; });
    --waiting_;
    if (!more || stopping_) return list;
    since = std::max(since, seen);
  }
}

void JobService::grown(uint64_t last_change) {
  {
    std::lock_guard lock(mutex_);
    last_change_ = std::max(last_change_, last_change);
  }
  grown_.notify_all();
}

void JobService::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  grown_.notify_all();
}

}  // namespace sublet::server
