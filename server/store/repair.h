// Finds what is damaged in a pool's database, and makes a new one of what can still be read.
// For a disk that lost or changed pages of the file; rows with impossible values are skipped
// and reported when the server starts.
//
// Any thread; one call at a time for a database.
#ifndef SUBLET_SERVER_STORE_REPAIR_H_
#define SUBLET_SERVER_STORE_REPAIR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "server/commit/changes.h"
#include "server/store/table_copier.h"

namespace sublet::server {

struct DamagedTable {
  std::string name;
  std::vector<std::string> findings;  // not empty
};

// Reads every page of the database; a server may be using it. Throws StoreError if the file is
// not a database of the present layout.
std::vector<DamagedTable> find_damage(const std::string& database);

// The rows of the table contents, which is not damaged. Throws StoreError.
std::vector<ContentRow> contents_of(const std::string& database);

struct Salvage {
  std::vector<SalvagedTable> tables;
  std::string kept;  // path of the old database
};

// Replaces the database, which no program may have open, by a new one with all rows that can be
// read, and keeps the old one beside it as NAME.damaged-SUFFIX. Needs as much disk space as the
// database has. Throws StoreError; then the database is the old one or, if the last sync of its
// folder failed, perhaps the new one, with the old one beside it.
Salvage salvage(Files& files, const std::string& database, const std::string& suffix);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_REPAIR_H_
