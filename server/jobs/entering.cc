#include "server/jobs/entering.h"

#include "base/log.h"
#include "server/commit/crash_point.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {
constexpr std::chrono::seconds kPause(1);  // after a failure

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
  unfinished_.swap(unfinished);
  waiting_.swap(waiting);
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
  const bool is_last = slice.is_last;
  std::future<bool> committed;
  bool is_prepared = false;
  try {
    committed = post(std::move(slice));
    following = slice_now();
    is_prepared = true;
  } catch (const std::exception& e) {
    log(Severity::debug) << "entering batch " << batch << " is put off: " << e.what();
  }
  if (!committed.valid() || !committed.get()) return false;
  crash_point("slice");
  if (is_last) {
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

Entering::Slice Entering::make_slice(Batch& batch) {
  Slice slice;
  DraftRow& draft = batch.draft;
  EventJobs jobs(batch.row.user, draft.entered == 0);
  slice.event.batch = batch.row.id;
  slice.event.user = batch.row.user;
  slice.event.submit_host = batch.row.submit_host;
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
  slice.is_last = batch.reader.at_end();
  slice.event.jobs = jobs.take();
  slice.event.piece.to_come = slice.is_last ? 0 : batch.row.count - draft.entered;
  draft.next_part = batch.reader.part();
  draft.next_range = batch.reader.range();
  slice.after = draft;
  return slice;
}

void Entering::fill(Batch& batch, Slice& slice, EventJobs& jobs) {
  size_t bytes = 0;
  while (!size_.is_full(jobs.entries(), slice.specs.size(), bytes)) {
    const SpecRange* range = batch.reader.next();
    if (range == nullptr) return;
    slice.specs.push_back(spec_row(*range, slice.event.piece.first + jobs.count()));
    bytes += slice.specs.back().body.size();
    jobs.add(*range);
  }
}

std::future<bool> Entering::post(Slice slice) {
  auto committed = std::make_shared<std::promise<bool>>();
  auto shared = std::make_shared<Slice>(std::move(slice));
  pipeline_.post(
      [shared](Turn& turn) {
        turn.apply(shared->event);
        Changes& changes = turn.changes();
        std::move(shared->specs.begin(), shared->specs.end(), std::back_inserter(changes.specs));
        const DraftRow& after = shared->after;
        if (shared->is_last) {
          changes.dropped_parts.push_back(after.batch);
        } else {
          changes.drafts[after.batch] = after;
          changes.entered_parts[after.batch] = after.next_part;
        }
      },
      [committed](bool ok) { committed->set_value(ok); });
  return committed->get_future();
}

}  // namespace sublet::server
