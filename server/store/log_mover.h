// Moves what was committed from SQLite's log into the database's file, on a thread of its own: a
// thousand pages are written for that. A commit waits only for the last few, and until all are
// synced, because the log begins anew only when all has been moved and nothing was committed
// meanwhile.
//
// The thread looks at the log only while some of it has not been moved, or the committer waits: see
// sqlite::move_log().
//
// Threads: the committer.
#ifndef SUBLET_SERVER_STORE_LOG_MOVER_H_
#define SUBLET_SERVER_STORE_LOG_MOVER_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "server/store/sqlite.h"

namespace sublet::server {

// In pages of the database (4 KiB).
struct LogSizes {
  int some = 1'000;   // so many are worth moving
  int few = 100;      // for so many a commit waits
  int most = 16'000;  // once the log is so long, a commit waits for all that can be moved
};

class LogMover {
 public:
  LogMover(std::string path, const LogSizes& sizes) : path_(std::move(path)), sizes_(sizes) {}
  ~LogMover();

  // The length of the log after a commit. May wait until the thread has moved what is left of it;
  // not for pages that a reader still needs, or that cannot be moved.
  void noted(int pages);

 private:
  // Starts the thread, if it does not run yet. False: it cannot be started now.
  bool runs();
  void run();
  // Waits until there is something to move, and notes which log it is in. False: this object ends.
  bool wait(uint64_t& log);
  // Of this log so much has been moved; none: it failed.
  void note_moved(uint64_t log, const std::optional<sqlite::MovedLog>& moved);

  const std::string path_;
  const LogSizes sizes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t log_ = 0;  // how often it has begun anew
  int pages_ = 0;     // in the log
  int moved_ = 0;     // of these
  int due_ = sizes_.some;
  bool is_kept_ = false;  // the last time nothing could be moved
  bool is_left_ = false;  // a few are left, for which the next commit waits if it adds no more
  bool is_awaited_ = false;
  bool ends_ = false;
  bool has_complained_ = false;  // of the thread
  std::thread thread_;           // from the first time on that there is something to move
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_LOG_MOVER_H_
