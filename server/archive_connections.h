// The archive's connections to the database, which calls take turns at. Includes
// SOCI: for the .cc files of the archive only.
#ifndef SUBLET_SERVER_ARCHIVE_CONNECTIONS_H_
#define SUBLET_SERVER_ARCHIVE_CONNECTIONS_H_

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "server/archive.h"
#include "server/store.h"

namespace sublet::server {

class Archive::Connections {
 public:
  Connections(const std::string& path, size_t count) : sessions_(count) {
    for (auto& s : sessions_) {
      s.open(soci::sqlite3, "db=" + path + " timeout=10");
      s << "PRAGMA query_only=1";
      free_.push_back(&s);
    }
  }

  // Runs f(session) on a connection that nobody else uses meanwhile.
  template <typename F>
  auto with(F f) {
    soci::session* session = take();
    try {
      if constexpr (std::is_void_v<decltype(f(*session))>) {
        f(*session);
        give(session);
      } else {
        auto result = f(*session);
        give(session);
        return result;
      }
    } catch (const soci::soci_error& e) {
      give(session);
      throw StoreError(std::string("the database could not be read: ") + e.get_error_message());
    } catch (...) {
      give(session);
      throw;
    }
  }

 private:
  soci::session* take() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return !free_.empty(); });
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

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<soci::session> sessions_;
  std::vector<soci::session*> free_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_ARCHIVE_CONNECTIONS_H_
