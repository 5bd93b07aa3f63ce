// The archive's database connections, shared between calls. Includes SOCI, so
// only the archive's .cc files may include this.
#ifndef SUBLET_SERVER_STORE_ARCHIVE_CONNECTIONS_H_
#define SUBLET_SERVER_STORE_ARCHIVE_CONNECTIONS_H_

#include <soci/soci.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "protocol/codec.h"
#include "server/commit/store.h"
#include "server/refusal.h"
#include "server/store/archive/archive.h"
#include "server/store/sqlite.h"

namespace sublet::server {

// A query was ended by Archive::within().
inline Refusal too_long() {
  return Refusal(Refusal::Kind::kLimitExceeded, "question.too_long",
                 "the answer takes longer than the server allows",
                 "Ask for less at a time: a batch, some ids, unfinished jobs, a shorter period.",
                 "question");
}

class Archive::Connection : public soci::session {
 public:
  // Reads the description that covers the job, or else the last one before it; false:
  // there is none. Prepared once, since it is called for every job that starts.
  bool read_spec(JobId id, JobId* first_job, std::string* body) {
    if (!spec_)
      spec_ = std::make_unique<soci::statement>(
          (prepare << "select first_job, body from specs where first_job <= :id order by first_job "
                      "desc limit 1",
           soci::into(first_job_), soci::into(body_), soci::use(id_)));
    id_ = static_cast<long long>(id);
    if (!spec_->execute(true)) return false;
    *first_job = static_cast<JobId>(first_job_);
    *body = std::move(body_);
    // Read to the end: an open statement would keep SQLite's log (WAL) from being reset.
    while (spec_->fetch()) {
    }
    return true;
  }

 private:
  long long id_ = 0;
  long long first_job_ = 0;
  std::string body_;
  std::unique_ptr<soci::statement> spec_;
};

class Archive::Connections {
 public:
  Connections(const std::string& path, size_t count) : path_(path), connections_(count) {
    for (auto& c : connections_) {
      sqlite::open_to_read(c, path_);
      free_.push_back(&c);
    }
  }

  // From now on the calling thread has a connection of its own.
  void serve_apart() {
    auto own = std::make_unique<Connection>();
    sqlite::open_to_read(*own, path_);
    t_own = {number_, own.get()};
    std::lock_guard lock(mutex_);
    apart_.push_back(std::move(own));
  }

  // Runs f(connection) with exclusive use of a connection. Throws Refusal
  // (kUnavailable) when none is free within `patience`.
  template <typename F>
  auto with(F f, std::chrono::microseconds patience = std::chrono::seconds(10)) {
    if (t_own.of == number_) return ask(*t_own.connection, f);
    const Place place(*this, patience);
    return ask(*place.connection, f);
  }

 private:
  struct Place {
    Place(Connections& all, std::chrono::microseconds patience)
        : connection(all.take(patience)), all(all) {}
    ~Place() { all.give(connection); }
    Place(const Place&) = delete;
    Connection* const connection;
    Connections& all;
  };

  template <typename F>
  static auto ask(Connection& connection, F& f) {
    try {
      return f(connection);
    } catch (const soci::soci_error& e) {
      if (sqlite::was_interrupted(e)) throw too_long();
      throw StoreError(std::string("the database could not be read: ") + e.get_error_message());
    } catch (const protocol::Damaged& e) {
      throw StoreError(std::string("a row of the database is damaged: ") + e.what());
    }
  }
  Connection* take(std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_for(lock, patience, [this] { return !free_.empty(); }))
      throw Refusal(Refusal::Kind::kUnavailable, "server.busy",
                    "the database is busy with other requests", "Try again in a moment.",
                    "database");
    Connection* c = free_.back();
    free_.pop_back();
    return c;
  }
  void give(Connection* c) {
    {
      std::lock_guard lock(mutex_);
      free_.push_back(c);
    }
    freed_.notify_one();
  }

  // Tells the archives of this process apart, also those that are gone.
  static uint64_t next_number() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }
  // This thread's own connection, and the number of the archive that it belongs to.
  struct Own {
    uint64_t of;
    Connection* connection;
  };
  inline static thread_local Own t_own{0, nullptr};

  const uint64_t number_ = next_number();
  const std::string path_;
  std::vector<std::unique_ptr<Connection>> apart_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Connection> connections_;
  std::vector<Connection*> free_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_ARCHIVE_CONNECTIONS_H_
