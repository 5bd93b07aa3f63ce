#include "server/store/repair.h"

#include <soci/soci.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/log.h"
#include "server/commit/store.h"
#include "server/store/archive/finished.h"
#include "server/store/job_counts.h"
#include "server/store/replacement.h"
#include "server/store/rows.h"
#include "server/store/set_aside.h"
#include "server/store/sqlite.h"
#include "server/store/table_copier.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

// No server has written a layout above this. A larger one was changed by the disk.
constexpr long long kLastLayout = 1000;

// The layout that the database gives; the present one if it cannot be read.
long long layout_of(soci::session& sql) {
  long long layout = kSchemaVersion;
  try {
    sql << "select version from pool", soci::into(layout);
  } catch (const soci::soci_error& e) {
    if (!sqlite::is_damage(e)) throw;
  }
  return layout;
}

bool is_layout(long long layout) { return layout > 0 && layout <= kLastLayout; }

StoreError lost_tables() {
  return StoreError(
      "the description of its tables is damaged, so that its rows cannot be found: restore a "
      "backup");
}

std::set<std::string> names_of_tables(soci::session& sql) {
  try {
    soci::rowset<std::string> names =
        (sql.prepare << "select name from sqlite_schema where type = 'table'");
    return {names.begin(), names.end()};
  } catch (const soci::soci_error& e) {
    if (!sqlite::is_damage(e)) throw;
    throw lost_tables();
  }
}

// Returns the layout. A table that cannot be read, and a layout that none can be, count as
// the present one.
long long require_present_layout(soci::session& sql) {
  const std::set<std::string> names = names_of_tables(sql);
  if (!names.contains(tables::kPool.name)) throw lost_tables();
  const long long layout = layout_of(sql);
  if (layout != kSchemaVersion && is_layout(layout))
    throw StoreError("it has layout " + std::to_string(layout) + ", and this program needs " +
                     std::to_string(kSchemaVersion) +
                     "; use the version of the server that wrote it");
  for (const Table* table : tables::all())
    if (!names.contains(table->name)) throw lost_tables();
  return layout;
}

// A column that has ids: its table, the column, how many ids follow it, and the id's kind in
// table pool.
struct IdColumn {
  const char* table;
  const char* last;
  const char* next;
};

// Every column that may know the last id given, should table pool or the last rows of others
// be lost. Ids are never given again.
constexpr IdColumn kIdColumns[] = {
    {"jobs", "id + count - 1", "next_job"},
    {"specs", "first_job + jobs - 1", "next_job"},
    {"batches", "first_job + jobs - 1", "next_job"},
    {"attempts", "job", "next_job"},
    {"ends", "job", "next_job"},
    {"uses", "job", "next_job"},
    {"changes", "job + count - 1", "next_job"},
    {"files", "job", "next_job"},
    {"outputs_removed", "job", "next_job"},
    {"batches", "id", "next_batch"},
    {"relations", "job + count - 1", "next_job"},
    {"feeds", "producer", "next_job"},
    {"feeds", "consumer + count - 1", "next_job"},
    {"stops", "batch", "next_batch"},
    {"parts", "batch", "next_batch"},
    {"drafts", "batch", "next_batch"},
    {"jobs", "batch", "next_batch"},
    {"uses", "batch", "next_batch"},
    {"changes", "batch", "next_batch"},
    {"files", "batch", "next_batch"},
    {"machines", "id", "next_machine"},
    {"credentials", "machine", "next_machine"},
    {"attempts", "machine", "next_machine"},
    {"uses", "machine", "next_machine"},
    {"changes", "number", "next_change"},
};

// Ids beyond this are damage: it would take 285 years to give so many at a million a second.
constexpr long long kLargestId = 1ll << 53;
// So are instants that are further ahead of the clock.
constexpr long long kAhead = 24 * 3600ll * 1'000'000;

SalvagedTable& entry_of(std::vector<SalvagedTable>& copied, const std::string& table) {
  return *std::find_if(copied.begin(), copied.end(),
                       [&](const SalvagedTable& one) { return one.name == table; });
}

// Deletes the rows with a value that cannot be right: one of them would ruin the counters, or
// the clock, for ever.
void delete_rows(soci::session& sql, const std::string& table, const std::string& condition,
                 std::vector<SalvagedTable>& copied) {
  const std::string from = " from " + table + " where " + condition;
  const uint64_t count = number_of(sql, "select count(*)" + from);
  if (count == 0) return;
  sql << "delete" + from;
  SalvagedTable& entry = entry_of(copied, table);
  entry.refused += count;
  entry.rows -= std::min(entry.rows, count);
}

void delete_impossible_rows(soci::session& sql, long long latest,
                            std::vector<SalvagedTable>& copied) {
  for (const IdColumn& ids : kIdColumns)
    delete_rows(sql, ids.table, std::string(ids.last) + " > " + std::to_string(kLargestId), copied);
  for (const char* table : {"events", "changes"})
    delete_rows(sql, table, "at > " + std::to_string(latest), copied);
}

// Makes what table pool says at least what the other tables say.
void restore_pool(soci::session& sql, long long latest) {
  sql << "insert or ignore into pool (id, version, next_job, next_batch, next_machine, "
         "next_change, last_tick, now, utc_offset, indices_due) values "
         "(1, 0, 1, 1, 1, 1, 0, 0, 0, 0)";
  sql << "delete from pool where id <> 1";
  sql << "update pool set version = " << kSchemaVersion;
  for (const char* next : {"next_job", "next_batch", "next_machine", "next_change"})
    sql << "update pool set " << next << " = 1 where " << next << " not between 1 and "
        << kLargestId;
  for (const char* instant : {"now", "last_tick", "indices_due"})
    sql << "update pool set " << instant << " = 0 where " << instant << " not between 0 and "
        << latest;
  for (const IdColumn& ids : kIdColumns)
    sql << "update pool set " << ids.next << " = max(" << ids.next << ", (select coalesce(max("
        << ids.last << "), 0) + 1 from " << ids.table << "))";
  for (const char* table : {"events", "changes"})
    sql << "update pool set now = max(now, (select coalesce(max(at), 0) from " << table << "))";
  sql << "update pool set last_tick = now where last_tick = 0";
}

// Jobs and batches that have moved to files of history have ids, too. A file that cannot be
// read is passed over.
void count_finished(soci::session& sql, Files& files, const std::string& folder) {
  if (!files.exists(folder)) return;
  for (const FolderEntry& entry : files.list(folder)) {
    if (month_of(entry.name).empty()) continue;
    try {
      sqlite::attach(sql, folder + "/" + entry.name, "finished");
      for (const IdColumn& ids : {IdColumn{"jobs", "id + count - 1", "next_job"},
                                  IdColumn{"batches", "id", "next_batch"}})
        sql << "update pool set " << ids.next << " = max(" << ids.next << ", (select coalesce(max("
            << ids.last << "), 0) + 1 from finished." << ids.table << " where " << ids.last
            << " <= " << kLargestId << "))";
    } catch (const soci::soci_error& e) {
      log(Severity::warning) << "the ids in " << entry.name
                             << " could not be read: " << e.get_error_message();
    }
    try {
      sql << "detach finished";
    } catch (const soci::soci_error&) {
      // It could not be attached.
    }
  }
}

// What the tables say of each other's rows. A content that no file refers to leaves its file
// in the spool, which the server's next start puts aside.
void restore_agreement(soci::session& sql) {
  sql << "delete from contents where not exists (select 1 from files where files.content = "
         "contents.id)";
  sql << "delete from spool_use";
  sql << "insert into spool_use (user_name, kind, bytes) select user_name, kind = 2, sum(size) "
         "from files group by user_name, kind = 2";
  sql << "delete from job_counts";  // the server's next start counts the jobs
  sql << "delete from drafts where not exists (select 1 from batches where batches.id = "
         "drafts.batch)";
  sql << "insert into spool_use (user_name, kind, bytes) select user_name, 0, sum(bytes) from "
         "drafts where bytes > 0 group by user_name on conflict (user_name, kind) do update set "
         "bytes = spool_use.bytes + excluded.bytes";
}

std::vector<std::string> set_aside_in(const std::string& database) {
  soci::session sql;
  sqlite::open_to_read(sql, database);
  sqlite::tolerate_damage(sql);
  require_present_layout(sql);
  return tables_set_aside(sql);
}

// Adds what can be read of a table that the server had set aside to what it has written since.
void add_set_aside(soci::session& sql, const Table& table, const std::string& aside,
                   SalvagedTable& copied) {
  Table part = table;
  part.name = "salvaged_part";
  part.indexes = {};
  for (const std::string& statement : creation(part)) sql << statement;
  const SalvagedTable found = TableCopier(sql, part, "old." + aside).copy();
  sql << "insert or ignore into main." << table.name << " select * from main." << part.name;
  sql << "drop table main." << part.name;
  copied.rows = number_of(sql, std::string("select count(*) from main.") + table.name);
  copied.refused += found.refused;
  copied.complete = copied.complete && found.complete;
  if (!found.unreadable.empty())
    copied.unreadable += (copied.unreadable.empty() ? "" : ", ") + found.unreadable;
}

std::vector<SalvagedTable> copy_tables(Files& files, const std::string& database,
                                       const std::string& copy) {
  const std::vector<std::string> aside = set_aside_in(database);
  soci::session sql;
  sqlite::open_new(sql, copy);
  sqlite::tolerate_damage(sql);
  sqlite::attach(sql, database, "old");
  std::vector<SalvagedTable> copied;
  for (const Table* table : tables::all()) {
    for (const std::string& statement : creation(*table)) sql << statement;
    copied.push_back(TableCopier(sql, *table, std::string("old.") + table->name).copy());
    for (const std::string& name : aside)
      if (is_aside_of(*table, name)) add_set_aside(sql, *table, name, copied.back());
  }
  if (std::all_of(copied.begin(), copied.end(), [](const auto& one) { return one.rows == 0; }))
    throw StoreError("no row of it can be read");
  const long long latest = system_clock().utc_us() + kAhead;
  delete_impossible_rows(sql, latest, copied);
  restore_pool(sql, latest);
  count_finished(sql, files, folder_of(database) + "/history");
  restore_agreement(sql);
  return copied;
}

}  // namespace

std::vector<DamagedTable> find_damage(const std::string& database) {
  try {
    soci::session sql;
    sqlite::open_to_read(sql, database);
    sqlite::tolerate_damage(sql);
    const long long layout = require_present_layout(sql);
    std::vector<DamagedTable> damaged;
    if (!is_layout(layout))
      damaged.push_back({tables::kPool.name, {"no database has layout " + std::to_string(layout)}});
    for (const Table* table : tables::all()) {
      auto findings = sqlite::damage_of(sql, table->name);
      if (!findings.empty()) damaged.push_back({table->name, std::move(findings)});
    }
    for (const std::string& name : tables_set_aside(sql))
      damaged.push_back({name, {"the server has set it aside"}});
    if (damaged.empty())
      if (std::string wrong = wrong_count(sql); !wrong.empty())
        damaged.push_back({tables::kJobCounts.name, {std::move(wrong)}});
    return damaged;
  } catch (const std::exception& e) {
    throw StoreError("cannot check the database " + database + ": " + e.what());
  }
}

std::vector<ContentRow> contents_of(const std::string& database) {
  try {
    soci::session sql;
    sqlite::open_to_read(sql, database);
    sqlite::tolerate_damage(sql);
    return rows_of(sql, tables::kContents, "order by id");
  } catch (const std::exception& e) {
    throw StoreError("cannot read the database " + database + ": " + e.what());
  }
}

Salvage salvage(Files& files, const std::string& database, const std::string& suffix) {
  Salvage result;
  result.kept = database + ".damaged-" + suffix;
  try {
    replace_database(files, database, result.kept, [&](const std::string& copy) {
      result.tables = copy_tables(files, database, copy);
    });
  } catch (const std::exception& e) {
    throw StoreError("cannot salvage the database " + database + ": " + e.what());
  }
  return result;
}

}  // namespace sublet::server
