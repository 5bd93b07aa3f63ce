#include "server/commit/event_history.h"

#include <climits>

#include "base/log.h"
#include "base/text.h"
#include "server/commit/crash_point.h"
#include "server/commit/store.h"

namespace sublet::server {
namespace {
constexpr Micros kDay = 24 * 3600ll * 1'000'000;
constexpr int kSlicesPerRound = 40;
constexpr int kAll = INT_MAX;
// After so many failures in a row another file is tried.
constexpr int kTries = 3;

Micros now_of(Pipeline& pipeline) {
  Micros now = 0;
  pipeline.perform([&](Turn& turn) { now = turn.now(); });
  return now;
}
}  // namespace

EventHistory::EventHistory(const EventHistorySettings& settings, EventFiles& files, Micros now)
    : settings_(settings), files_(files) {
  try {
    const auto newest = files_.newest();
    const bool young = newest && now - newest->begins < settings_.least_age;
    if (!young) files_.hold(false);
  } catch (const std::runtime_error& e) {
    // The first call of move_events() begins a file instead.
    log(Severity::error) << "history does not begin with the start of the server: " << e.what();
  }
}

void EventHistory::hold_now(Pipeline& pipeline) {
  std::string error;
  pipeline.perform_alone([](Turn& turn) { turn.apply(turn.pool().anchor()); },
                         [&] {
                           try {
                             files_.hold(true);
                           } catch (const StoreError& e) {
                             error = e.what();
                           }
                         });
  if (!error.empty()) throw StoreError(error);
}

bool EventHistory::is_due(Micros now) const {
  const auto newest = files_.newest();
  if (!newest) return true;
  return now / kDay != newest->begins / kDay || newest->bytes > settings_.largest_file;
}

void EventHistory::move_events(Pipeline& pipeline) {
  try {
    const Micros now = now_of(pipeline);
    move(pipeline, now);
    remove_old(now);
    failures_ = 0;
  } catch (const std::exception& e) {
    // Until the records are no longer held, the database's log cannot be emptied.
    files_.drop();
    if (++failures_ == 1)
      log(Severity::error) << "events could not be moved to history and stay in the database: "
                           << e.what();
  }
}

void EventHistory::move(Pipeline& pipeline, Micros now) {
  EventFiles::Waiting waiting = files_.waiting();
  const bool same_file = goes_on(waiting);
  if (!files_.holds() && (is_due(now) || !same_file)) {
    // Most of them now: the records should not be held for long.
    if (files_.newest() && same_file && !move_up_to(pipeline, 0, kSlicesPerRound)) return;
    hold_now(pipeline);
  }
  if (files_.holds()) {
    const uint64_t before = files_.held_after();
    if (files_.newest() && same_file) move_up_to(pipeline, before, kAll);
    files_.begin_file();
    crash_point("anchored");
    forget(pipeline, before);
    waiting = files_.waiting();
  }
  const bool enough = waiting.count >= settings_.move_at ||
                      (waiting.count > 0 && now - waiting.since >= settings_.move_after);
  if (enough) move_up_to(pipeline, 0, kSlicesPerRound);
}

bool EventHistory::goes_on(const EventFiles::Waiting& waiting) const {
  if (waiting.follow && failures_ < kTries) return true;
  // If the new file cannot be written either, this is called again and again.
  if (failures_ == 0 || failures_ == kTries)
    log(Severity::error) << "history cannot go on in " << files_.newest()->path
                         << ", which is damaged or lacks the events before those in the database; "
                            "it goes on in a new file, without the events in between";
  return false;
}

bool EventHistory::move_up_to(Pipeline& pipeline, uint64_t number, int slices) {
  for (int i = 0; i < slices; ++i) {
    const EventFiles::Copied copied = files_.copy_events(number);
    crash_point("events");
    forget(pipeline, copied.last);
    if (!copied.more) return true;
  }
  return false;
}

void EventHistory::forget(Pipeline& pipeline, uint64_t number) {
  pipeline.perform([&](Turn& turn) { turn.changes().forget_events = number; });
}

void EventHistory::remove_old(Micros now) {
  const Micros before = settings_.keep == 0 ? 0 : now - settings_.keep;
  for (const EventFile& file : files_.remove_old(before, settings_.most_bytes))
    log(Severity::info) << "removed " << file.path << ", " << format_bytes(file.bytes)
                        << " of events from " << format_instant(file.begins) << " on";
}

}  // namespace sublet::server
