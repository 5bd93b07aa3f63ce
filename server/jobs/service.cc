#include "server/jobs/service.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "server/jobs/brain_form.h"
#include "server/page_limit.h"
#include "server/refusal.h"
#include "server/request_key.h"

namespace sublet::server {
namespace {

constexpr uint32_t kWaiters = 256;        // held changes_since calls
constexpr int64_t kLongestHold = 10'000;  // ms
// Records that one transaction changes, so that others' work comes between.
constexpr ptrdiff_t kChangedAtOnce = 250;

Refusal job_unknown(JobId id) {
  const std::string subject = "job " + std::to_string(id);
  return Refusal(Refusal::Kind::kNotFound, "job.unknown", "there is no " + subject,
                 "See `sublet ls --all`.", subject);
}

// Only that the job exists, its user, and its state and times.
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
                       QuestionGate& questions, std::function<void()> may_submit,
                       const JobSettings& settings)
    : pipeline_(pipeline),
      archive_(archive),
      sessions_(sessions),
      access_(access),
      questions_(questions),
      may_submit_(std::move(may_submit)),
      settings_(settings),
      entering_(pipeline, archive, settings.slice),
      last_change_(archive.last_change()) {}

// Slots run jobs under user ids without a name. The same id is later used for another
// user's job, which must not own what an earlier job submitted.
void JobService::require_name(const Caller& caller) const {
  if (caller.named) return;
  throw Refusal(Refusal::Kind::kNotPermitted, "caller.nameless",
                "user id " + std::to_string(caller.uid) + " has no name here",
                "Submit from an account with a password entry.", caller.user);
}

// Before it has ended, a batch that is named has only some of its jobs, or some are behind its
// gate.
void JobService::require_entered(const DraftRow& draft) {
  if (!draft.entering) return;
  const std::string subject = "batch " + std::to_string(draft.batch);
  throw Refusal(Refusal::Kind::kConflict, "batch.entering",
                "the jobs of " + subject + " are still being entered: nothing was changed",
                "Try again in a moment.", subject);
}

// The unfinished jobs that the query selects. All selected jobs must belong to the caller.
std::vector<scheduling::JobRange> JobService::reach(const Caller& caller, JobQuery query,
                                                    uint64_t* reached) {
  if (query.batch != 0) {
    require_entered(archive_.draft(query.batch));
    // A page then needs no look at the pages before it.
    const auto batch = archive_.batch(query.batch);
    if (batch && query.ids.empty()) query.ids = {{batch->first_job, batch->count}};
  }
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
    if (ids.size() > settings_.most_controlled)
      throw Refusal(Refusal::Kind::kLimitExceeded, "control.too_many",
                    "more than " + std::to_string(settings_.most_controlled) +
                        " separate jobs are selected; nothing was changed",
                    "Select fewer at a time: by batch, by ids or by state.", "filter");
    after = page.next;
  } while (after != 0);
  return ids;
}

namespace {

// The arguments of a control, by which a repeat is recognised.
std::string digest_of(const JobService::Act& act, const JobQuery& query) {
  constexpr const char* kNames[] = {"remove", "hold", "release", "set_priority"};
  std::string named;
  for (const auto& range : query.ids)
    named += std::to_string(range.first) + "+" + std::to_string(range.count) + ",";
  for (uint32_t state : query.states) named += " " + std::to_string(state);
  named += query.unfinished_only ? " unfinished " : " all ";
  if (query.stopped != JobQuery::Stopped::kAny)
    named += query.stopped == JobQuery::Stopped::kOnly ? "stopped " : "not stopped ";
  if (act.action == JobService::Action::kSetPriority)
    named += "priority " + std::to_string(act.priority) + " ";
  return arguments_digest(kNames[static_cast<int>(act.action)],
                          named + std::to_string(query.batch) + " " + query.user);
}

// Jobs may have changed state since they were read: only those still in a selected state change.
scheduling::Event event_of(const JobService::Act& act, const JobQuery& query,
                           std::vector<scheduling::JobRange> ids, const std::string& by) {
  std::vector<scheduling::JobState> only_in;
  for (const uint32_t state : query.states)
    only_in.push_back(static_cast<scheduling::JobState>(state));
  switch (act.action) {
    case JobService::Action::kRemove:
      return scheduling::JobsRemoved{std::move(ids), only_in, by};
    case JobService::Action::kHold:
      return scheduling::JobsHeld{std::move(ids), only_in, by};
    case JobService::Action::kRelease:
      return scheduling::JobsReleased{std::move(ids), only_in};
    case JobService::Action::kSetPriority:
      return scheduling::PrioritySet{std::move(ids), act.priority, only_in};
  }
  throw std::logic_error("an unknown action");
}

}  // namespace

ControlResult JobService::control(const Caller& caller, const std::string& request, const Act& act,
                                  const JobQuery& query) {
  require_name(caller);
  if (query.ids.empty() && !query.batch && query.user.empty() && query.states.empty())
    throw Refusal(Refusal::Kind::kInvalid, "filter.empty", "no jobs are selected",
                  "Give ids, a batch, a user or a state.", "filter");
  const std::string key = request_key(caller.uid, request);
  uint64_t reached = 0;
  std::vector<scheduling::JobRange> ids;
  std::optional<Refusal> refused;
  try {
    ids = reach(caller, query, &reached);
    if (reached == 0 && query.ids.size() == 1 && query.ids[0].count == 1 &&
        !archive_.job(query.ids[0].first))
      throw job_unknown(query.ids[0].first);
  } catch (const Refusal& refusal) {
    refused = refusal;  // unless this is a repeat, which gets its first answer
  }
  const std::string digest = digest_of(act, query);
  ControlResult result;
  bool is_over = false;
  for (size_t done = 0; !is_over; done += kChangedAtOnce) {
    const auto from = ids.begin() + static_cast<ptrdiff_t>(done);
    const auto to = from + std::min<ptrdiff_t>(kChangedAtOnce, ids.end() - from);
    pipeline_.perform([&](Turn& turn) {
      if (auto answer = turn.answered(key, digest)) {
        result.changed = std::stoull(*answer);
        result.unchanged = std::stoull(answer->substr(answer->find(' ') + 1));
        is_over = true;
        return;
      }
      if (refused) throw *refused;
      if (done == 0 && query.batch != 0) require_entered(draft_in(turn, query.batch));
      result.changed += turn.apply(event_of(act, query, {from, to}, caller.user)).answer.changed;
      if (to != ids.end()) return;
      is_over = true;
      result.unchanged = reached - result.changed;
      turn.remember(key, digest,
                    std::to_string(result.changed) + " " + std::to_string(result.unchanged));
    });
  }
  return result;
}

JobPage JobService::list(const Caller& caller, const JobQuery& query, JobId after, uint32_t limit) {
  check_limit(limit);
  JobPage page = questions_.ask(caller.user, [&] {
    return query.runs ? archive_.described_runs(query, after, limit)
                      : archive_.jobs(query, after, limit);
  });
  for (auto& row : page.rows) {
    if (!access_.owns(caller, row.job.user)) row = what_others_see(row);
  }
  return page;
}

std::vector<std::pair<uint32_t, uint64_t>> JobService::count(const Caller& caller,
                                                             const JobQuery& query) {
  return questions_.ask(caller.user, [&] { return archive_.count(query); });
}

JobRow JobService::own_job(const Caller& caller, JobId id) {
  auto row = archive_.job(id);
  if (!row) throw job_unknown(id);
  access_.require_owner(caller, row->job.user, "job " + std::to_string(id));
  return std::move(*row);
}

JobOutputs JobService::outputs_of(const JobRow& row, uint64_t after, uint32_t limit) {
  JobOutputs outputs;
  outputs.files = archive_.outputs(row.job.id, after, limit);
  if (outputs.files.empty()) return outputs;
  const auto newest = archive_.attempts(row.job.id, outputs.files[0].attempt - 1, 1);
  if (!newest.empty()) outputs.end = newest[0].end;
  return outputs;
}

std::vector<AttemptRow> JobService::attempts(const Caller& caller, JobId id, uint64_t after,
                                             uint32_t limit) {
  check_limit(limit);
  return questions_.ask(caller.user, [&] {
    own_job(caller, id);
    if (after > UINT32_MAX) return std::vector<AttemptRow>();
    return archive_.attempts(id, static_cast<uint32_t>(after), limit);
  });
}

JobOutputs JobService::outputs(const Caller& caller, JobId id, uint64_t after, uint32_t limit) {
  check_limit(limit);
  return questions_.ask(caller.user, [&] { return outputs_of(own_job(caller, id), after, limit); });
}

// The brain is asked on this thread: it must not be held by one of low priority.
JobDetails JobService::show(const Caller& caller, JobId id) {
  std::optional<uint64_t> memory_asked;
  JobDetails details =
      questions_.ask(caller.user, [&] { return details_of(caller, id, memory_asked); });
  details.live = live(details.row.job);
  if (!scheduling::is_final(details.row.job.state)) add_outlook(caller, details, memory_asked);
  return details;
}

JobDetails JobService::details_of(const Caller& caller, JobId id,
                                  std::optional<uint64_t>& memory_asked) {
  JobDetails details;
  details.row = own_job(caller, id);
  const uint32_t made = details.row.job.attempts;
  const std::optional<JobDescription> spec = archive_.spec(id);
  details.spec = spec.value_or(JobDescription{});
  details.attempts = archive_.attempts(id, made > kShown ? made - kShown : 0, kShown);
  details.outputs = outputs_of(details.row, 0, kShown);
  details.outputs_removed = archive_.outputs_removed_at(id);
  if (spec) memory_asked = brain_job(*spec).needs.memory;
  return details;
}

void JobService::add_outlook(const Caller& caller, JobDetails& details,
                             std::optional<uint64_t> memory_asked) {
  const JobId id = details.row.job.id;
  std::optional<scheduling::Outlook> outlook;
  Micros now = 0;
  pipeline_.ask([&](const scheduling::Pool& pool, Micros at) {
    if (pool.job(id)) details.row.job.reason = pool.why(id, at, memory_asked);
    outlook = pool.outlook(id, at);
    const auto machine = pool.promised(id);
    details.promised = machine ? pool.machine(*machine)->record.name : "";
    now = at;
  });
  if (!outlook) return;
  details.forecast =
      questions_.ask(caller.user, [&] { return start_forecast(archive_, *outlook, now); });
}

std::optional<LiveStatus> JobService::live(const scheduling::JobRecord& job) const {
  if (!scheduling::is_at_work(job.state)) return std::nullopt;
  return sessions_.status({job.id, job.attempts});
}

int32_t JobService::progress(const scheduling::JobRecord& job) const {
  if (job.state == scheduling::JobState::kDone) return 1'000'000;
  if (!scheduling::is_at_work(job.state)) return -1;
  return sessions_.progress_ppm({job.id, job.attempts});
}

ChangeList JobService::read_changes(const std::string& user, uint64_t since) {
  ChangeList list;
  list.last = archive_.last_change();
  list.items = archive_.changes(since, user, kPageItems);
  if (!list.items.empty()) list.last = std::max(list.last, list.items.back().number);
  const uint64_t first = archive_.first_change();
  list.gap = first > since + 1;
  if (list.items.size() == kPageItems) list.last = list.items.back().number;
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
    since = std::max(since, list.last);
    std::unique_lock lock(mutex_);
    if (stopping_ || waiting_ >= kWaiters) return list;
    if (last_change_ > since) continue;  // his, perhaps, since they were read
    const bool more = wait_for_changes(lock, user, until);
    if (more) continue;
    // None of those until now is his.
    if (!stopping_) list.last = std::max(since, last_change_);
    return list;
  }
}

bool JobService::wait_for_changes(std::unique_lock<std::mutex>& lock, const std::string& user,
                                  std::chrono::steady_clock::time_point until) {
  Watch& watch = watches_[user];
  const uint64_t before = watch.times;
  ++watch.waiting;
  ++waiting_;
  const bool woken =
      watch.grown.wait_until(lock, until, [&] { return stopping_ || watch.times != before; });
  --waiting_;
  if (--watch.waiting == 0) watches_.erase(user);
  return woken && !stopping_;
}

void JobService::grown(uint64_t last_change, const std::set<std::string>& users) {
  std::lock_guard lock(mutex_);
  last_change_ = std::max(last_change_, last_change);
  for (auto& [user, watch] : watches_) {
    if (!user.empty() && !users.contains(user)) continue;
    ++watch.times;
    watch.grown.notify_all();
  }
}

void JobService::stop() {
  entering_.stop();
  std::lock_guard lock(mutex_);
  stopping_ = true;
  for (auto& [user, watch] : watches_) watch.grown.notify_all();
}

}  // namespace sublet::server
