// All that holds for SQLite alone: how it is opened, what its dialect has of its own, and
// the end of a question that takes too long. A store in another database has another file
// like this one; the statements everywhere else are common to both.
#ifndef SUBLET_SERVER_STORE_SQLITE_H_
#define SUBLET_SERVER_STORE_SQLITE_H_

#include <chrono>
#include <string>

namespace soci {
class session;
}

namespace sublet::server::sqlite {

// Open the database at `path`, for one that writes (and makes it) or for one that only
// reads. Throw soci::soci_error.
void open_to_write(soci::session& session, const std::string& path);
void open_to_read(soci::session& session, const std::string& path);

// Ends the statement that makes a table: Storage::kByKey.
inline constexpr const char* kStoredByKey = " without rowid";
// Declares a column: Type::kNumbered.
inline constexpr const char* kNumbered = " integer primary key";

// After a table's name in a question: answer it through this index, which the planner would
// not choose by itself (it does not know how few of the rows are in it).
std::string through(const std::string& index);

// Interrupts statements of this session that still run when the time is over, from its
// making on; they throw soci::soci_error then.
class TimeLimit {
 public:
  TimeLimit(soci::session& session, std::chrono::microseconds span);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  soci::session& session_;
  const std::chrono::steady_clock::time_point end_;
};

}  // namespace sublet::server::sqlite

#endif  // SUBLET_SERVER_STORE_SQLITE_H_
