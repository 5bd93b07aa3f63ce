#include "server/store/log_mover.h"

#include <soci/soci.h>

#include <algorithm>
#include <exception>

#include "base/log.h"

namespace sublet::server {

LogMover::~LogMover() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LogMover::noted(int pages) {
  std::unique_lock lock(mutex_);
  if (pages < pages_) {  // all had been moved
    ++log_;
    moved_ = 0;
    due_ = sizes_.some;
    is_kept_ = is_left_ = false;
  }
  pages_ = pages;
  const bool is_too_long = pages_ >= sizes_.most && !is_kept_;
  if (pages_ < due_ && !is_left_ && !is_too_long) return;
  if (!runs()) return;
  is_awaited_ = is_too_long || (is_left_ && pages_ - moved_ <= sizes_.few);
  is_left_ = false;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !is_awaited_; });
}

bool LogMover::runs() {
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::exception& e) {  // what was committed is
    if (!std::exchange(has_complained_, true))
      log(Severity::warning) << "no thread to move the log of " << path_ << ": " << e.what();
  }
  return thread_.joinable();
}

bool LogMover::wait(uint64_t& log) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ends_ || is_awaited_ || pages_ >= due_; });
  log = log_;
  return !ends_;
}

void LogMover::note_moved(uint64_t log, const std::optional<sqlite::MovedLog>& moved) {
  std::lock_guard lock(mutex_);
  if (log != log_) return;  // it has begun anew meanwhile; what is awaited now is looked at next
  const bool is_all = moved && moved->moved == moved->pages && moved->pages >= pages_;
  const bool has_come_further = moved && moved->moved > moved_;
  if (has_come_further) moved_ = moved->moved;
  is_kept_ = !is_all && !has_come_further;
  // There may be more in it than has been noted.
  due_ = is_all ? std::max(pages_, moved->pages) + sizes_.some
                : (has_come_further ? moved_ : pages_) + sizes_.few + 1;
  is_left_ = has_come_further && !is_all && pages_ < due_;
  if (is_all || is_kept_) is_awaited_ = false;
  changed_.notify_all();
}

void LogMover::run() {
  std::optional<soci::session> sql;
  bool has_complained = false;
  for (uint64_t log = 0; wait(log);) {
    std::optional<sqlite::MovedLog> moved;
    try {
      if (!sql) sqlite::open_to_change(sql.emplace(), path_);
      moved = sqlite::move_log(*sql);
    } catch (const std::exception& e) {
      sql.reset();
      if (!has_complained)
        sublet::log(Severity::warning) << "what was committed cannot be moved from the log of "
                                       << path_ << " into the database: " << e.what();
      has_complained = true;
    }
    note_moved(log, moved);
  }
}

}  // namespace sublet::server
