// The archive's connections to the database, which calls take turns at. Includes
// SOCI: for the .cc files of the archive only.
#ifndef SUBLET_SERVER_ARCHIVE_CONNECTIONS_H_
#define SUBLET_SERVER_ARCHIVE_CONNECTIONS_H_

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/archive.h"
#include "server/refusal.h"
#include "server/store.h"

namespace sublet::server {

class Archive::Connections {
 public:
  Connections(const std::string& path, size_t count) : path_(path), sessions_(count) {
    for (auto& s : sessions_) {
      open(s);
      free_.push_back(&s);
    }
  }

  // From now on the calling thread has a connection that is only its own. Once,
  // before other threads come.
  void serve_apart() {
    open(apart_);
    apart_thread_ = std::this_thread::get_id();
  }

  // Runs f(session) on a connection that nobody else uses meanwhile. Throws
  // Refusal (kUnavailable) when none is free within `patience`.
  template <typename F>
  auto with(F f, std::chrono::microseconds patience = std::chrono::seconds(10)) {
    if (std::this_thread::get_id() == apart_thread_.load()) return ask(apart_, f);
    const Place place(*this, patience);
    return ask(*place.session, f);
  }

 private:
  struct Place {
    Place(Connections& all, std::chrono::microseconds patience)
        : session(all.take(patience)), all(all) {}
    ~Place() { all.give(session); }
    Place(const Place&) = delete;
    soci::session* const session;
    Connections& all;
  };

  void open(soci::session& session) const {
    session.open(soci::sqlite3, "db=" + path_ + " timeout=10");
    session << "PRAGMA query_only=1";
  }
  template <typename F>
  static auto ask(soci::session& session, F& f) {
    try {
      return f(session);
    } catch (const soci::soci_error& e) {
      throw StoreError(std::string("the database could not be read: ") + e.get_error_message());
    }
  }
  soci::session* take(std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_for(lock, patience, [this] { return !free_.empty(); }))
      throw Refusal(Refusal::Kind::kUnavailable, "server.busy",
                    "others' questions keep the database busy", "Ask again in a moment.",
                    "database");
    soci::session* s = free_.back();
    free_.pop_back();
    return s;
  }
  void give(soci::session* s) {
    {
      std::lock_guard lock(mutex_);
      free_.push_back(s);
    }
    freed_.notify_one();
  }

  const std::string path_;
  soci::session apart_;
  std::atomic<std::thread::id> apart_thread_{};  // of nobody at first
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<soci::session> sessions_;
  std::vector<soci::session*> free_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_ARCHIVE_CONNECTIONS_H_
