#include "scheduling/books/job_book.h"

#include <algorithm>
#include <utility>

#include "scheduling/books/attempt_book.h"
#include "scheduling/books/relation_book.h"
#include "scheduling/matching/matcher.h"

namespace sublet::scheduling {
namespace {
// Whether a job in that state wants a machine, now or as soon as it has none.
bool is_active(const Job& job, JobState s) {
  if (s == JobState::kWaiting) return job.waits_for == nullptr;
  return !is_final(s) && s != JobState::kHeld;
}
}  // namespace

JobBook::JobBook(const Parameters& parameters, Ledger& ledger, Matcher& matcher,
                 const AttemptBook& attempts, RelationBook& relations, const Policies& policies,
                 Changes& changes)
    : ledger_(ledger),
      matcher_(matcher),
      attempts_(attempts),
      relations_(relations),
      policies_(policies),
      share_priority_(parameters),
      changes_(changes) {}

Job* JobBook::live(JobId id) {
  const auto it = jobs_.find(id);
  // A job that became final in the current apply is not live either.
  return it == jobs_.end() || is_final(it->second.record.state) ? nullptr : &it->second;
}

Job* JobBook::with(JobId id) {
  if (Job* job = live(id)) return job;
  auto it = arrays_.upper_bound(id);
  if (it == arrays_.begin()) return nullptr;
  Job* job = (--it)->second;
  const bool inside = id - job->record.id < job->record.count;
  return inside && !is_final(job->record.state) ? job : nullptr;
}

void JobBook::count_in(const Job& job, JobState state) {
  const uint64_t count = job.record.count;
  const bool active = is_active(job, state);
  if (active) {
    if (job.user->active == 0) ledger_.begin_active(*job.user);
    job.user->active += count;
  }
  if (state != JobState::kWaiting) return;
  waiting_ += count;
  if (!active) return;
  job.user->waiting += count;
  ledger_.note_moved(*job.user);
  matcher_.hosts().began_to_wait(*job.host, count);
}

void JobBook::count_out(const Job& job, JobState state, uint64_t count) {
  const bool active = is_active(job, state);
  if (active) {
    job.user->active -= count;
    if (job.user->active == 0) ledger_.end_active(*job.user);
  }
  if (state != JobState::kWaiting) return;
  waiting_ -= count;
  if (!active) return;
  job.user->waiting -= count;
  ledger_.note_moved(*job.user);
  matcher_.hosts().ceased_to_wait(*job.host, count);
}

Job& JobBook::adopt(JobRecord record) {
  const JobId id = record.id;
  Job& job = jobs_[id];
  job.record = std::move(record);
  job.user = &ledger_.counted_for(job.record.user);
  job.host = matcher_.hosts().enter(job.record.submit_host.str());
  job.record.submit_host.share(job.host->name);
  job.demand = matcher_.enter_demand(job.record.needs);
  ++job.user->jobs;
  if (const std::string& hours = job.record.needs.hours.str(); !hours.empty())
    ++job.user->hours[hours];
  if (const auto it = batches_.find(job.record.batch); it != batches_.end()) {
    job.batch = &it->second;
    if (job.batch->jobs.empty() && job.batch->record.at_most > 0) ++job.user->limited_batches;
    job.batch->jobs.insert(id);
  }
  job.waits_for = relations_.of(id);
  job.due_kind = Timed::Kind::kJob;
  job.due_id = id;
  if (job.record.count > 1) arrays_[id] = &job;
  count_in(job, job.record.state);
  return job;
}

Job& JobBook::split(Job& job, uint64_t head) {
  JobRecord& record = job.record;
  JobRecord rest = one_of(record, head);
  rest.count = record.count - head;
  rest.share_priority_step = rest.count > 1 ? record.share_priority_step : 0;
  record.count = head;
  if (head == 1) {
    record.share_priority_step = 0;
    arrays_.erase(record.id);
  }
  touch(job);
  // adopt() counts the others in before they are counted out here, so that the host keeps its
  // turn in REQUESTING.
  const uint64_t moved = rest.count;
  Job& other = adopt(std::move(rest));
  touch(other);
  count_out(job, record.state, moved);
  if (record.state == JobState::kWaiting) enqueue(other);
  return other;
}

std::vector<Job*> JobBook::split_out(const JobRange& range) {
  std::vector<Job*> result;
  const JobId next = changes_.counters().next_job;
  if (range.first >= next) return result;
  const JobId end = range.first + std::min(range.count, next - range.first);
  for (JobId id = range.first; id < end;) {
    Job* job = with(id);
    if (job == nullptr) {
      ++id;
      continue;
    }
    if (job->record.id < id) job = &split(*job, id - job->record.id);
    if (job->record.count > end - id) split(*job, end - id);
    result.push_back(job);
    id += job->record.count;
  }
  return result;
}

void JobBook::each_live(const JobRange& range,
                        const std::function<void(const Job&, const JobRange&)>& visit) const {
  const JobId end = std::min(range.first + range.count, changes_.counters().next_job);
  for (JobId id = range.first; id < end;) {
    const Job* job = with(id);
    const JobId next = job == nullptr ? id + 1 : std::min(job->record.id + job->record.count, end);
    if (job != nullptr) visit(*job, {id, next - id});
    id = next;
  }
}

void JobBook::set_state(Job& job, JobState state, EndReason ended) {
  const JobState before = job.record.state;
  if (before == JobState::kWaiting) {
    matcher_.queue().take(job);
    matcher_.promises().forget(job);
    matcher_.give_up_licences(job);
    not_yet_.set(job, 0);
  }
  count_out(job, before, job.record.count);
  if (state == JobState::kWaiting) begin_draws(job);
  count_in(job, state);
  job.record.state = state;
  job.record.changed = changes_.now();
  touch(job);
  changes_.add_change(job.record, ended);
  if (is_final(state)) relations_.note_end(job.record, std::exchange(job.waits_for, nullptr));
}

void JobBook::begin_draws(const Job& job) {
  const bool first = job.waits_for == nullptr && job.user->waiting == 0;
  if (first && policies_.job->wants_draws()) ledger_.begin_to_wait(*job.user);
}

void JobBook::enqueue(Job& job) {
  // Only one attempt at a time: a released job waits for the end of the attempt that
  // was ordered to leave.
  if (attempts_.find(job.record.id) != nullptr) return;
  if (job.waits_for != nullptr) return;
  const Micros waits_until = std::max(job.record.not_before, job.record.earliest);
  if (waits_until > changes_.now()) return not_yet_.set(job, waits_until);
  matcher_.queue().add(job, policies_.job->order(job.record));
}

void JobBook::end_waits() {
  while (Timed* timed = not_yet_.reached(changes_.now())) {
    not_yet_.set(*timed, 0);
    enqueue(*static_cast<Job*>(timed));
  }
}

void JobBook::make_ready(Job& job) {
  const bool waits = job.record.state == JobState::kWaiting;
  if (waits) count_out(job, JobState::kWaiting, job.record.count);
  job.waits_for = nullptr;
  if (waits) {
    begin_draws(job);
    count_in(job, JobState::kWaiting);
    job.record.changed = changes_.now();  // from now on it waits for a machine
  }
  note_submitted(job);
  if (waits) enqueue(job);
}

void JobBook::note_started(Job& job) {
  if (job.record.has_started) return;
  job.record.has_started = true;
  relations_.note_started(job.record.id);
  touch(job);
}

void JobBook::note_submitted(Job& job) {
  share_priority_.submitted(job.record, job.user->record, job.user->waiting, changes_.now());
  touch(job);
}

void JobBook::note_returned(Job& job) {
  share_priority_.returned(job.record, job.user->record, job.user->waiting, changes_.now());
  touch(job);
}

void JobBook::follow(const Parameters& parameters) {
  share_priority_ = SharePriority(parameters);
  std::vector<Job*> queued;
  for (auto& [id, job] : jobs_)
    if (job.line != nullptr) queued.push_back(&job);
  // In the order of ids, so that equal histories give equal queues.
  std::sort(queued.begin(), queued.end(),
            [](const Job* a, const Job* b) { return a->record.id < b->record.id; });
  for (Job* job : queued) matcher_.queue().take(*job);
  matcher_.give_up_all_licences();
  matcher_.set_licences(parameters.licences);
  for (Job* job : queued) matcher_.queue().add(*job, policies_.job->order(job->record));
}

bool JobBook::set_priority(Job& job, int32_t priority) {
  if (job.record.priority == priority) return false;
  const bool queued = job.line != nullptr;
  matcher_.queue().take(job);
  job.record.priority = priority;
  if (queued) enqueue(job);
  touch(job);
  return true;
}

void JobBook::ask_memory(Job& job, uint64_t memory) {
  if (job.record.needs.memory >= memory) return;
  const bool queued = job.line != nullptr;
  matcher_.queue().take(job);
  matcher_.promises().forget(job);
  matcher_.give_up_licences(job);
  job.record.needs.memory = memory;
  Demand* before = job.demand;
  job.demand = matcher_.enter_demand(job.record.needs);
  matcher_.leave_demand(before);
  if (queued) enqueue(job);
  touch(job);
}

void JobBook::open_batch(BatchId id, const StopWhen& stop_when, uint64_t at_most,
                         uint64_t to_come) {
  Batch& batch = batches_[id];
  batch.record = {id, stop_when, 0, 0, 0, at_most, to_come};
  touch(batch);
}

void JobBook::note_to_come(BatchId id, uint64_t jobs) {
  const auto it = batches_.find(id);
  if (it == batches_.end()) return;
  it->second.record.to_come = jobs;
  touch(it->second);
}

void JobBook::note_begin(BatchId id) {
  if (const auto it = batches_.find(id); it != batches_.end()) ++it->second.attempts;
}

void JobBook::note_end(BatchId id) {
  if (const auto it = batches_.find(id); it != batches_.end()) --it->second.attempts;
}

bool JobBook::restore(const BatchRecord& row) {
  const bool has_purpose = row.stop_when.is_set() || row.at_most > 0;
  if (row.id == 0 || !has_purpose || batches_.contains(row.id)) return false;
  batches_[row.id].record = row;
  return true;
}

void JobBook::forget_empty_batches() {
  std::erase_if(batches_, [](const auto& batch) {
    return batch.second.jobs.empty() && batch.second.record.to_come == 0;
  });
}

void JobBook::wait_again(Job& job) {
  count_out(job, job.record.state, job.record.count);
  job.record.state = JobState::kWaiting;
  count_in(job, job.record.state);
}

void JobBook::hold_back_unaccounted(Micros delay) {
  for (const JobId id : unaccounted_) {
    Job* job = live(id);
    if (job == nullptr) continue;
    job->record.not_before = changes_.now() + delay;
    touch(*job);
    if (job->record.state != JobState::kWaiting) continue;
    job->record.reason = "attempt " + std::to_string(job->record.attempts) +
                         " is missing from the store and may still be running";
    enqueue(*job);
  }
  unaccounted_.clear();
}

void JobBook::emit() {
  for (const Job* job : touched_.all()) changes_.add(job->record);
  for (const Batch* batch : touched_batches_.all()) changes_.add(batch->record);
  touched_batches_.clear();
}

void JobBook::erase_final() {
  for (Job* job : touched_.all())
    if (is_final(job->record.state)) final_.push_back(job);
  touched_.clear();
  for (Job* job : final_) {
    if (const auto hours = job->user->hours.find(job->record.needs.hours.str());
        hours != job->user->hours.end() && --hours->second == 0)
      job->user->hours.erase(hours);
    if (--job->user->jobs == 0) ledger_.note_loss(*job->user);
    forget_batch_of(*job);
    Demand* demand = job->demand;
    Host* host = job->host;
    arrays_.erase(job->record.id);
    jobs_.erase(job->record.id);
    matcher_.hosts().leave(host);
    matcher_.leave_demand(demand);
  }
  final_.clear();
}

// A batch without live jobs is no longer needed, if none are to come.
void JobBook::forget_batch_of(Job& job) {
  if (job.batch == nullptr) return;
  job.batch->jobs.erase(job.record.id);
  if (!job.batch->jobs.empty()) return;
  if (job.batch->record.at_most > 0) --job.user->limited_batches;
  if (job.batch->record.to_come == 0) batches_.erase(job.record.batch);
}

}  // namespace sublet::scheduling
