// Moves the brain's events from the database to files, each of which begins with what is needed
// to replay it (server/store/archive/event_files.h), and removes the oldest files.
//
// A new file begins when the server starts, each UTC day, and when the newest one is large.
// Events are on disk in the file before their rows are deleted. A server that crashes in
// between does not copy them again; the next one goes on.
//
// Threads: constructed before the pipeline; then one at a time.
#ifndef SUBLET_SERVER_COMMIT_EVENT_HISTORY_H_
#define SUBLET_SERVER_COMMIT_EVENT_HISTORY_H_

#include <string>

#include "server/commit/pipeline.h"
#include "server/store/archive/event_files.h"

namespace sublet::server {

struct EventHistorySettings {
  Micros keep = 0;                            // how long files are kept; 0: for ever
  uint64_t most_bytes = 0;                    // of all files together; the oldest go first
  uint64_t largest_file = uint64_t{1} << 30;  // a larger one is the last of its day
  Micros move_after = 600ll * 1'000'000;      // how long events may wait in the database, unless
  uint64_t move_at = EventFiles::kAtOnce;     // there are as many as this
  Micros least_age = 600ll * 1'000'000;       // a younger file goes on after a start
};

class EventHistory {
 public:
  // Keeps the records from which the brain is about to be restored.
  EventHistory(const EventHistorySettings& settings, EventFiles& files, Micros now);

  // Moves events and begins files as is due; must be called soon after the start, because the
  // records held keep the database's log from being emptied, and periodically. What fails is
  // logged, once, and tried again by the next call; nothing is lost.
  void move_events(Pipeline& pipeline);

 private:
  void move(Pipeline& pipeline, Micros now);
  // Whether the events in the database go on in the newest file. If not, it is logged once.
  bool goes_on(const EventFiles::Waiting& waiting) const;
  // Anchors the brain, and keeps its records as of that event.
  void hold_now(Pipeline& pipeline);
  bool is_due(Micros now) const;
  // Moves the events up to this number (0: all), at most so many slices. False: more are left.
  bool move_up_to(Pipeline& pipeline, uint64_t number, int slices);
  void forget(Pipeline& pipeline, uint64_t number);
  void remove_old(Micros now);

  const EventHistorySettings settings_;
  EventFiles& files_;
  int failures_ = 0;  // calls in a row
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_COMMIT_EVENT_HISTORY_H_
