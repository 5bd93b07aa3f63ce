#include "server/store/repair.h"

#include <soci/soci.h>

#include <algorithm>

#include "server/commit/store.h"
#include "server/store/replacement.h"
#include "server/store/sqlite.h"
#include "server/store/table_copier.h"
#include "server/store/tables.h"

namespace sublet::server {
namespace {

// A table that cannot be read has every layout.
void require_present_layout(soci::session& sql, const std::string& schema) {
  int32_t layout = kSchemaVersion;
  try {
    sql << "select version from " << schema << "pool", soci::into(layout);
  } catch (const soci::soci_error& e) {
    if (!sqlite::is_damage(e)) throw;
  }
  if (layout != kSchemaVersion)
    throw StoreError("it has layout " + std::to_string(layout) + ", and this program needs " +
                     std::to_string(kSchemaVersion) +
                     "; use the version of the server that wrote it");
}

std::vector<SalvagedTable> copy_tables(const std::string& database, const std::string& copy) {
  soci::session sql;
  sqlite::open_new(sql, copy);
  sqlite::attach(sql, database, "old");
  require_present_layout(sql, "old.");
  std::vector<SalvagedTable> copied;
  for (const Table* table : tables::all()) {
    for (const std::string& statement : creation(*table)) sql << statement;
    copied.push_back(TableCopier(sql, *table).copy());
  }
  if (std::all_of(copied.begin(), copied.end(), [](const auto& one) { return one.rows == 0; }))
    throw StoreError("no row of it can be read");
  return copied;
}

}  // namespace

std::vector<DamagedTable> find_damage(const std::string& database) {
  try {
    soci::session sql;
    sqlite::open_to_read(sql, database);
    require_present_layout(sql, "");
    std::vector<DamagedTable> damaged;
    for (const Table* table : tables::all()) {
      auto findings = sqlite::damage_of(sql, table->name);
      if (!findings.empty()) damaged.push_back({table->name, std::move(findings)});
    }
    return damaged;
  } catch (const std::exception& e) {
    throw StoreError("cannot check the database " + database + ": " + e.what());
  }
}

Salvage salvage(Files& files, const std::string& database, const std::string& suffix) {
  Salvage result;
  result.kept = database + ".damaged-" + suffix;
  try {
    replace_database(files, database, result.kept,
                     [&](const std::string& copy) { result.tables = copy_tables(database, copy); });
  } catch (const std::exception& e) {
    throw StoreError("cannot salvage the database " + database + ": " + e.what());
  }
  return result;
}

}  // namespace sublet::server
