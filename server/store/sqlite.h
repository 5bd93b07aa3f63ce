// Everything specific to SQLite: opening a database, its SQL dialect, and interrupting a
// query that takes too long. Support for another database needs another file like this one;
// all other SQL is portable.
#ifndef SUBLET_SERVER_STORE_SQLITE_H_
#define SUBLET_SERVER_STORE_SQLITE_H_

#include <chrono>
#include <string>
#include <vector>

namespace soci {
class session;
class soci_error;
}  // namespace soci

namespace sublet::server::sqlite {

// Open the database at `path` for writing (creating it) or read-only. Throw soci::soci_error.
void open_to_write(soci::session& session, const std::string& path);
void open_to_read(soci::session& session, const std::string& path);

// Opens a database that is there: to change its layout in one transaction, if nobody else uses it,
// or to move its log.
void open_to_change(soci::session& session, const std::string& path);
// The same for one that may be damaged: tolerate_damage() before its first page is read.
void open_damaged(soci::session& session, const std::string& path);
// Creates a database that the caller syncs when it is complete.
void open_new(soci::session& session, const std::string& path);
// From now on no commit of the session moves any of the log into the database's own file, and each
// notes in *pages how long the log is.
void leave_log(soci::session& session, int* pages);
// Moves what readers do not keep it from moving, while others may write; if that is all, it is
// synced. {0, 0}: another program is moving it. Throws soci::soci_error. Some of the log must not
// have been moved yet, or nobody may write: in SQLite before 3.51.3 a writer who begins the log
// anew while all of it is looked at again can lose what he commits (sqlite.org/wal.html, "The
// WAL-Reset Bug").
struct MovedLog {
  int pages = 0;  // of the log
  int moved = 0;  // of these, by now
};
MovedLog move_log(soci::session& session);
// Moves all that was written into the database's own file, and removes the log. Throws
// soci::soci_error, also if another program has the database open.
void finish_log(soci::session& session);
// Writes a copy of the database; the file must not exist. Throws soci::soci_error.
void copy_to(soci::session& session, const std::string& path);

// Lets statements read what is left of a damaged database, even if its file was cut off, and
// be told a disk's read errors from others.
void tolerate_damage(soci::session& session);
// Makes another database available under this name. Throws soci::soci_error.
void attach(soci::session& session, const std::string& path, const std::string& name);
// What is damaged in the file's pages of this table and its indexes, at most 100 findings.
// Throws soci::soci_error if the file is no database.
std::vector<std::string> damage_of(soci::session& session, const std::string& table);
// Whether a statement failed because the file is damaged; after tolerate_damage() also if the
// disk could not read it.
bool is_damage(const soci::soci_error& error);
// Whether a statement failed because there was no room, or because a TimeLimit ended it.
bool is_full(const soci::soci_error& error);
bool was_interrupted(const soci::soci_error& error);
// Whether SQLite could not allocate memory, which is no failure of the disk.
bool is_out_of_memory(const std::exception& error);
// The names of all tables. Throws soci::soci_error.
std::vector<std::string> table_names(soci::session& session);
// Renames a table and its indexes without reading any of their pages; call it in a
// transaction. Throws soci::soci_error.
void rename_damaged(soci::session& session, const std::string& from, const std::string& to);
// After a failed rename_damaged() that was rolled back.
void reread_schema(soci::session& session);
// The number of each row in a table that is Storage::kApart.
inline constexpr const char* kRowNumber = "rowid";

// Ends the statement that creates a table: Storage::kByKey.
inline constexpr const char* kStoredByKey = " without rowid";
// Declares a column: Type::kNumbered.
inline constexpr const char* kNumbered = " integer primary key";

// After a table's name in a query: forces this index, which the planner would not choose
// because it does not know how few rows the index has.
std::string through(const std::string& index);

// Interrupts statements of this thread, of all sessions, that still run `span` after
// construction; they throw soci::soci_error. Of several limits the first to end counts.
class TimeLimit {
 public:
  explicit TimeLimit(std::chrono::microseconds span);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  const std::chrono::steady_clock::time_point end_;
  const std::chrono::steady_clock::time_point end_before_;  // of the thread's other limits
};

}  // namespace sublet::server::sqlite

#endif  // SUBLET_SERVER_STORE_SQLITE_H_
