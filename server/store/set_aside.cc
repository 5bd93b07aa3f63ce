#include "server/store/set_aside.h"

#include <soci/soci.h>

#include <algorithm>

#include "base/log.h"
#include "server/commit/crash_point.h"
#include "server/store/rows.h"
#include "server/store/sqlite.h"
#include "server/store/table_copier.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

constexpr const char* kMark = "_damaged_";
constexpr const char* kCopy = "readable";  // what can be read of a damaged table

std::string unused_name(soci::session& session, const std::string& table) {
  const std::vector<std::string> used = tables_set_aside(session);
  for (int number = 1;; ++number) {
    const std::string name = table + kMark + std::to_string(number);
    if (std::find(used.begin(), used.end(), name) == used.end()) return name;
  }
}

std::string what_was_kept(const SalvagedTable& copied) {
  std::string text = std::to_string(copied.rows) + (copied.rows == 1 ? " row" : " rows") +
                     " could be read and stay in use";
  if (!copied.unreadable.empty()) text += "; missing: some of " + copied.unreadable;
  return text;
}

}  // namespace

bool can_be_set_aside(const Table& table) {
  for (const Table* one : std::initializer_list<const Table*>{
           &tables::kEvents, &tables::kChanges, &tables::kRequests, &tables::kSpent, &tables::kUses,
           &tables::kEnds, &tables::kJobCounts})
    if (one == &table) return true;
  return false;
}

namespace {

Table renamed(const Table& table, const char* name) {
  Table result = table;
  result.name = name;
  result.indexes = {};  // their names are taken
  return result;
}

void begin_copy(soci::session& session, const Table& copy) {
  session << "drop table if exists main." << kCopy;  // of a server that ended meanwhile, too
  for (const std::string& statement : creation(copy)) session << statement;
}

// Returns what stays in use, as text. Statements that read a damaged page roll back their
// transaction, so none of them is in one.
std::string copy_readable(soci::session& session, const Table& table,
                          std::chrono::microseconds longest) {
  const Table copy = renamed(table, kCopy);
  begin_copy(session, copy);
  bool full = false;
  try {
    const sqlite::TimeLimit limit(longest);
    return what_was_kept(TableCopier(session, copy, std::string("main.") + table.name).copy());
  } catch (const soci::soci_error& e) {
    full = sqlite::is_full(e);
    if (!full && !sqlite::was_interrupted(e)) throw;
  }
  // Others need the room more.
  if (full) begin_copy(session, copy);
  const uint64_t rows = number_of(session, std::string("select count(*) from main.") + kCopy);
  return "only its newest " + std::to_string(rows) + " rows stay in use, because there was no " +
         (full ? "room" : "time") + " to copy more: salvage brings back the others";
}

// Puts the copy, or without one an empty table, in the place of the damaged table.
void exchange(soci::session& session, const Table& table, const std::string& aside, bool copied) {
  try {
    soci::transaction transaction(session);
    sqlite::rename_damaged(session, table.name, aside);
    if (copied) session << "alter table main." << kCopy << " rename to " << table.name;
    for (const std::string& statement : creation(table)) session << statement;
    transaction.commit();
  } catch (...) {
    // What is rolled back in the file stays in the schema that this session remembers.
    sqlite::reread_schema(session);
    throw;
  }
}

}  // namespace

void set_aside(soci::session& session, const Table& table, std::chrono::microseconds longest) {
  const std::string aside = unused_name(session, table.name);
  const bool copies = &table != &tables::kEvents && &table != &tables::kJobCounts;
  const std::string kept = copies ? copy_readable(session, table, longest) : "a new one was begun";
  crash_point("set_aside");
  exchange(session, table, aside, copies);
  log(Severity::error) << "table " << table.name
                       << " of the database is damaged: it was set aside as " << aside << ", and "
                       << kept
                       << ". The server goes on; look at the disk, then stop the server and run "
                          "`sublet-server salvage`";
}

bool is_aside_of(const Table& table, const std::string& name) {
  return name.starts_with(std::string(table.name) + kMark);
}

std::vector<std::string> tables_set_aside(soci::session& session) {
  std::vector<std::string> names;
  for (const std::string& name : sqlite::table_names(session))
    if (name.find(kMark) != std::string::npos) names.push_back(name);
  return names;
}

}  // namespace sublet::server
