#include "server/store/sqlite.h"

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <mutex>
#include <string_view>

namespace sublet::server::sqlite {
namespace {

// Process-wide settings, made before the first connection.
void set_up() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Only one thread uses a connection at a time (the committer, the mover of its log, or the
    // current user of an archive connection), so SQLite's mutexes are not needed. Memory statistics
    // are not used, and would take a global lock on each allocation. These two fail if SQLite is
    // already initialized; it is then only slower.
    sqlite_api::sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
    sqlite_api::sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    // Without this one, uri_of() would name another file.
    if (sqlite_api::sqlite3_config(SQLITE_CONFIG_URI, 1) != SQLITE_OK)
      throw soci::soci_error("SQLite was initialized by something else");
  });
}

// SOCI's connection string ends a path at a space, so each octet that could mean something to
// it or to SQLite is written as %XX.
std::string uri_of(const std::string& path) {
  std::string uri = path.starts_with("/") ? "file://" : "file:";  // what follows // is a host
  for (const char c : path) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("/._-").find(c) != std::string_view::npos;
    char code[4];
    snprintf(code, sizeof code, "%%%02X", static_cast<unsigned char>(c));
    uri += plain ? std::string(1, c) : code;
  }
  return uri;
}

// SQLite's result code; SQLITE_OK: the error is SOCI's own.
int code_of(const soci::soci_error& error) {
  const auto* of_sqlite = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
  return of_sqlite != nullptr ? of_sqlite->result() : SQLITE_OK;
}

sqlite_api::sqlite3* handle(soci::session& session) {
  return static_cast<soci::sqlite3_session_backend*>(session.get_backend())->conn_;
}

// When this thread's statements are interrupted.
thread_local std::chrono::steady_clock::time_point t_end =
    std::chrono::steady_clock::time_point::max();

int is_over(void*) { return std::chrono::steady_clock::now() >= t_end ? 1 : 0; }

void open(soci::session& session, const std::string& path) {
  constexpr int kStepsBetween = 10'000;  // some tenths of a millisecond
  set_up();
  session.open(soci::sqlite3, "db=" + uri_of(path) + " timeout=10");
  sqlite_api::sqlite3_progress_handler(handle(session), kStepsBetween, is_over, nullptr);
}

}  // namespace

void open_to_write(soci::session& session, const std::string& path) {
  open(session, path);
  session << "PRAGMA journal_mode=WAL";
  session << "PRAGMA synchronous=FULL";
}

void open_to_read(soci::session& session, const std::string& path) {
  open(session, path);
  session << "PRAGMA query_only=1";
}

void open_to_change(soci::session& session, const std::string& path) {
  open(session, path);
  session << "PRAGMA synchronous=FULL";
}

void open_damaged(soci::session& session, const std::string& path) {
  open(session, path);
  tolerate_damage(session);
  session << "PRAGMA synchronous=FULL";
}

void open_new(soci::session& session, const std::string& path) {
  open(session, path);
  session << "PRAGMA synchronous=OFF";
}

void leave_log(soci::session& session, int* pages) {
  const auto note = [](void* to, sqlite_api::sqlite3*, const char*, int count) {
    *static_cast<int*>(to) = count;
    return SQLITE_OK;
  };
  sqlite_api::sqlite3_wal_hook(handle(session), note, pages);  // which replaces SQLite's own
}

MovedLog move_log(soci::session& session) {
  MovedLog log;
  const int code = sqlite_api::sqlite3_wal_checkpoint_v2(
      handle(session), nullptr, SQLITE_CHECKPOINT_PASSIVE, &log.pages, &log.moved);
  if (code == SQLITE_BUSY) return {};
  if (code != SQLITE_OK)
    throw soci::sqlite3_soci_error(sqlite_api::sqlite3_errmsg(handle(session)), code);
  return log;
}

void finish_log(soci::session& session) {
  session << "PRAGMA busy_timeout=1000";
  std::string mode;
  session << "PRAGMA journal_mode=DELETE", soci::into(mode);
  if (mode != "delete") throw soci::soci_error("another program uses it");
}

void copy_to(soci::session& session, const std::string& path) {
  session << "vacuum into :path", soci::use(path, "path");
}

void tolerate_damage(soci::session& session) {
  // Without this, a file shorter than its header says is not opened at all.
  session << "PRAGMA writable_schema=ON";
  sqlite_api::sqlite3_extended_result_codes(handle(session), 1);
}

void attach(soci::session& session, const std::string& path, const std::string& name) {
  session << "attach :path as " << name, soci::use(path, "path");
}

std::vector<std::string> damage_of(soci::session& session, const std::string& table) {
  std::vector<std::string> found;
  try {
    soci::rowset<std::string> lines =
        (session.prepare << "pragma integrity_check(" << table << ")");
    for (const std::string& line : lines)
      if (line != "ok") found.push_back(line);
  } catch (const soci::soci_error& e) {
    if (!is_damage(e)) throw;
    found.push_back("the rest cannot be read");
  }
  return found;
}

bool is_damage(const soci::soci_error& error) {
  const int code = code_of(error);
  return (code & 0xff) == SQLITE_CORRUPT || code == SQLITE_IOERR_READ ||
         code == SQLITE_IOERR_SHORT_READ;
}

bool is_full(const soci::soci_error& error) { return code_of(error) == SQLITE_FULL; }

bool is_out_of_memory(const std::exception& error) {
  const auto* from_soci = dynamic_cast<const soci::soci_error*>(&error);
  const int code = from_soci != nullptr ? code_of(*from_soci) : SQLITE_OK;
  return code == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM;
}

bool was_interrupted(const soci::soci_error& error) { return code_of(error) == SQLITE_INTERRUPT; }

std::vector<std::string> table_names(soci::session& session) {
  soci::rowset<std::string> rows =
      (session.prepare << "select name from sqlite_schema where type = 'table'");
  return {rows.begin(), rows.end()};
}

// An index cannot be renamed, and dropping it would read all its pages: its new name is
// written into the schema.
void rename_damaged(soci::session& session, const std::string& from, const std::string& to) {
  session << "PRAGMA writable_schema=ON";
  session << "update sqlite_schema set sql = replace(sql, name, '" << to << "_' || name), name = '"
          << to << "_' || name where type = 'index' and tbl_name = '" << from
          << "' and sql is not null";
  session << "PRAGMA writable_schema=RESET";
  session << "alter table " << from << " rename to " << to;
}

void reread_schema(soci::session& session) { session << "PRAGMA writable_schema=RESET"; }

std::string through(const std::string& index) { return " indexed by " + index; }

TimeLimit::TimeLimit(std::chrono::microseconds span)
    : end_(std::chrono::steady_clock::now() + span), end_before_(t_end) {
  t_end = std::min(end_, end_before_);
}

TimeLimit::~TimeLimit() { t_end = end_before_; }

}  // namespace sublet::server::sqlite
