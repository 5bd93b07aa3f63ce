#include "server/jobs/entering.h"

#include "base/log.h"
#include "server/commit/crash_point.h"
#include "server/jobs/brain_form.h"
#include "server/jobs/relations.h"
#include "server/jobs/sources.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {
constexpr std::chrono::seconds kPause(1);  // after a failure
// After so many failures, a pause after each, what cannot be read counts as removed.
constexpr int kMostUnreadable = 30;

Refusal still_entering(BatchId batch) {
  const std::string subject = "batch " + std::to_string(batch);
  return Refusal(Refusal::Kind::kUnavailable, "batch.entering",
                 subject + " is committed, but the server has not finished entering its jobs",
                 "Repeat the call with the same request id.", subject);
}
}  // namespace

Entering::Entering(Pipeline& pipeline, Archive& archive, const SliceSize& size)
    : pipeline_(pipeline), archive_(archive), size_(size) {
  load();
  thread_ = std::thread([this] { loop(); });
}

Entering::~Entering() { stop(); }

void Entering::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// With the mutex held, or before the thread.
void Entering::load() {
  std::set<BatchId> unfinished;
  Batches waiting;
  for (const DraftRow& draft : archive_.entering()) {
    const auto row = archive_.batch(draft.batch);
    if (!row) continue;
    unfinished.insert(draft.batch);
    waiting.push_back(std::make_unique<Batch>(archive_, *row, draft));
  }
  add_lost(unfinished, waiting);
  unfinished_.swap(unfinished);
  waiting_.swap(waiting);
}

void Entering::add_lost(std::set<BatchId>& unfinished, Batches& waiting) {
  for (const auto& [batch, jobs] : archive_.gated()) {
    if (!unfinished.insert(batch).second) continue;
    log(Severity::error) << "how far batch " << batch
                         << " was entered is lost: the jobs that are there go on";
    BatchRow row;
    row.id = batch;
    row.first_job = jobs.first;
    row.count = jobs.count;
    DraftRow draft;
    draft.batch = batch;
    draft.gated = true;
    waiting.push_back(std::make_unique<Batch>(archive_, std::move(row), draft));
  }
}

void Entering::finish(BatchId batch) {
  std::unique_lock lock(mutex_);
  // What the archive says cannot be out of date: a batch is unfinished here until its last slice is
  // on disk.
  if (!unfinished_.contains(batch)) {
    const DraftRow draft = archive_.draft(batch);
    const auto row = archive_.batch(batch);
    if (!draft.entering || !row) return;
    unfinished_.insert(batch);
    waiting_.push_back(std::make_unique<Batch>(archive_, *row, draft));
    changed_.notify_all();
  }
  const auto is_over = [&] { return stopping_ || !unfinished_.contains(batch); };
  const bool in_time = changed_.wait_for(lock, kLongestWait, is_over);
  if (!in_time || unfinished_.contains(batch)) throw still_entering(batch);
}

void Entering::loop() {
  std::optional<Slice> slice = next_slice();
  while (slice) {
    std::optional<Slice> following;
    if (!commit(std::move(*slice), following)) {
      begin_again();
      following.reset();
    }
    slice = following ? std::move(following) : next_slice();
  }
}

bool Entering::commit(Slice slice, std::optional<Slice>& following) {
  const BatchId batch = slice.after.batch;
  const bool has_last_jobs = slice.is_last;
  const std::shared_ptr<Gate> gate = slice.gate;
  std::future<bool> committed;
  bool is_prepared = false;
  try {
    committed = post(std::move(slice));
    following = slice_now();
    is_prepared = true;
  } catch (const std::exception& e) {
    log(Severity::debug) << "entering batch " << batch << " is put off: " << e.what();
  }
  if (!committed.valid() || !committed.get() || (gate && gate->is_unreadable)) return false;
  crash_point("slice");
  if (gate ? gate->is_open.load() : has_last_jobs) {
    std::lock_guard lock(mutex_);
    unfinished_.erase(batch);
    changed_.notify_all();
  }
  return is_prepared;
}

void Entering::begin_again() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPause, [this] { return stopping_; })) {
    try {
      load();
      break;
    } catch (const std::exception& e) {
      log(Severity::debug) << "the batches to be entered cannot be read: " << e.what();
    }
  }
  changed_.notify_all();
}

std::optional<Entering::Slice> Entering::next_slice() {
  std::optional<Slice> slice;
  std::unique_lock lock(mutex_);
  while (!slice) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) break;
    lock.unlock();
    try {
      slice = slice_now();
    } catch (const std::exception& e) {
      log(Severity::debug) << "a batch cannot be read now: " << e.what();
      begin_again();
    }
    lock.lock();
  }
  return slice;
}

std::optional<Entering::Slice> Entering::slice_now() {
  std::unique_ptr<Batch> batch;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [](const auto& one) { return one->gate && one->gate->is_open; });
    if (stopping_ || waiting_.empty()) return std::nullopt;
    batch = std::move(waiting_.front());
    waiting_.pop_front();
  }
  Slice slice = make_slice(*batch);
  if (!slice.is_last) {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(batch));
  }
  return slice;
}

Entering::Slice Entering::make_gate_slice(Batch& batch) {
  if (!batch.gate) {
    batch.gate = std::make_shared<Gate>();
    batch.gate->jobs = {batch.row.first_job, batch.row.count};
    batch.gate->next = batch.row.first_job;
  }
  Slice slice;
  slice.after = batch.draft;
  slice.gate = batch.gate;
  return slice;
}

Entering::Slice Entering::make_slice(Batch& batch) {
  if (batch.draft.gated && batch.reader.at_end()) return make_gate_slice(batch);
  Slice slice;
  DraftRow& draft = batch.draft;
  EventJobs jobs(batch.row.user, draft.entered == 0);
  slice.event.batch = batch.row.id;
  slice.event.user = batch.row.user;
  slice.event.submit_host = batch.row.submit_host;
  slice.event.on_never = brain_form(batch.row.on_never);
  slice.event.piece.gated = draft.gated;
  slice.event.piece.first = batch.row.first_job + draft.entered;
  slice.event.piece.index = static_cast<uint32_t>(draft.entered);
  try {
    fill(batch, slice, jobs);
    draft.entered += jobs.count();
  } catch (const Refusal& damage) {
    // What was acknowledged is entered as far as it can be read.
    draft.entered += jobs.count() + batch.reader.skip_part();
    log(Severity::error) << "jobs of batch " << batch.row.id << " are lost: " << damage.message;
  }
  const bool are_all = batch.reader.at_end();
  slice.is_last = are_all && !draft.gated;
  slice.event.jobs = jobs.take();
  slice.event.piece.to_come = are_all ? 0 : batch.row.count - draft.entered;
  draft.next_part = batch.reader.part();
  draft.next_range = batch.reader.range();
  slice.after = draft;
  return slice;
}

void Entering::fill(Batch& batch, Slice& slice, EventJobs& jobs) {
  size_t bytes = 0;
  while (!size_.is_full(jobs.entries(), slice.specs.size(), bytes)) {
    SpecRange* range = batch.reader.next();
    if (range == nullptr) return;
    const JobId first = slice.event.piece.first + jobs.count();
    name_by_ids(batch.row.first_job, *range);
    note_feeds(batch.row.first_job, first, *range, slice.feeds);
    slice.specs.push_back(spec_row(*range, first));
    bytes += slice.specs.back().body.size();
    jobs.add(*range);
  }
}

void Entering::enter(Turn& turn, Slice& slice) {
  turn.apply(slice.event);
  Changes& changes = turn.changes();
  std::move(slice.specs.begin(), slice.specs.end(), std::back_inserter(changes.specs));
  std::move(slice.feeds.begin(), slice.feeds.end(), std::back_inserter(changes.feeds));
  const DraftRow& after = slice.after;
  if (slice.is_last) {
    changes.dropped_parts.push_back(after.batch);
  } else {
    changes.drafts[after.batch] = after;
    changes.entered_parts[after.batch] = after.next_part;
  }
}

// The database may be damaged there, or be readable again in a moment.
std::optional<std::vector<scheduling::LostDependence>> Entering::lost(
    Turn& turn, Gate& gate, const scheduling::RelationsBegun& event) {
  const auto unclear = turn.pool().unclear(event.first, event.jobs, event.most);
  try {
    return gate.ended.lost(turn, archive_, unclear, unreadable_ >= kMostUnreadable);
  } catch (const StoreError& e) {
    if (unreadable_++ == 0)
      log(Severity::warning) << "how jobs have ended for which others wait cannot be read now: "
                             << e.what();
    gate.is_unreadable = true;
    return std::nullopt;
  }
}

// After a crash all is looked at anew: what has begun stays as it is.
void Entering::begin(Turn& turn, const Slice& slice) {
  Gate& gate = *slice.gate;
  if (gate.is_open) return;  // this slice was made before that was known
  const JobId end = gate.jobs.first + gate.jobs.count;
  const scheduling::JobRange left{gate.next, end - gate.next};
  scheduling::RelationsBegun event{left, gate.opens, size_.ranges, gate.jobs.first};
  if (!gate.opens) {
    auto found = lost(turn, gate, event);
    if (!found) return;  // the next slice goes on with it
    event.lost = std::move(*found);
  }
  gate.next = turn.apply(event).answer.first_job;
  if (gate.next != 0) return;
  if (gate.opens) {
    turn.changes().dropped_parts.push_back(slice.after.batch);
    gate.is_open = true;
    unreadable_ = 0;
    return;
  }
  gate.opens = true;
  gate.next = gate.jobs.first;
}

std::future<bool> Entering::post(Slice slice) {
  auto committed = std::make_shared<std::promise<bool>>();
  auto shared = std::make_shared<Slice>(std::move(slice));
  pipeline_.post(
      [this, shared](Turn& turn) { shared->gate ? begin(turn, *shared) : enter(turn, *shared); },
      [committed](bool ok) { committed->set_value(ok); });
  return committed->get_future();
}

}  // namespace sublet::server
