#include "server/housekeeper.h"

#include <unistd.h>

#include <chrono>

#include "base/log.h"
#include "base/process.h"
#include "server/refusal.h"

namespace sublet::server {
namespace {
constexpr std::chrono::seconds kPause(5);
constexpr Micros kMinute = 60'000'000;
}  // namespace

Housekeeper::Housekeeper(const HousekeeperSettings& settings, Pipeline& pipeline, Archive& archive,
                         SpoolService& files, DiskGuard& disk, Sessions& sessions,
                         EventHistory& events)
    : settings_(settings),
      pipeline_(pipeline),
      archive_(archive),
      files_(files),
      disk_(disk),
      sessions_(sessions),
      events_(events),
      history_(settings.history_folder, settings.keep_uses, system_files(), archive, pipeline),
      jobs_(settings.keep_jobs, archive, pipeline) {}

Housekeeper::~Housekeeper() { stop(); }

void Housekeeper::start() {
  thread_ = std::thread([this] { loop(); });
}

void Housekeeper::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Housekeeper::loop() {
  // At once: until the records held since the start are in their file, the database's log grows
  // with each commit, and the commit that may empty it at last takes long.
  events_.move_events(pipeline_);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPause, [this] { return stopping_; })) {
    lock.unlock();
    tidy();
    lock.lock();
  }
}

void Housekeeper::tidy() {
  try {
    disk_.restore_reserve();
    forget_old();
    events_.move_events(pipeline_);
    files_.collect_garbage();
    history_.write_old();
    jobs_.move_old();
  } catch (const std::exception& e) {
    // The disk is full or the server is stopping: try again in the next round.
    log(Severity::debug) << "housekeeping was postponed: " << e.what();
  }
}

void Housekeeper::forget_old() {
  const auto usage = process_usage(getpid());
  const Micros cpu = usage ? usage->cpu_us : recorded_cpu_;
  pipeline_.perform([&](Turn& turn) {
    const Micros now = turn.now();
    Changes& changes = turn.changes();
    if (cpu > recorded_cpu_) changes.spent.push_back({now - now % kMinute, cpu - recorded_cpu_});
    for (const auto& batch : archive_.open_batches_before(now - settings_.batch_idle)) {
      if (changes.batches.count(batch.id)) continue;  // touched in this group
      changes.dropped_batches.push_back(batch.id);
      changes.dropped_parts.push_back(batch.id);
    }
    changes.forget_requests = now - settings_.keep_requests;
    if (settings_.keep_changes) changes.forget_changes = now - settings_.keep_changes;
    sessions_.keep_statuses([&](scheduling::AttemptKey key) {
      const auto* attempt = turn.pool().attempt(key.job);
      return attempt && attempt->key == key;
    });
  });
  recorded_cpu_ = cpu;
}

}  // namespace sublet::server
