// Brings a pool's database from an earlier layout to the present one, kSchemaVersion (tables.h).
// Steps go forwards only, from each layout to the next. They change a copy, which takes the
// database's place when it is complete and on disk: an error or a loss of power at any moment
// leaves the old database or the new one, never something in between.
#ifndef SUBLET_SERVER_STORE_MIGRATION_H_
#define SUBLET_SERVER_STORE_MIGRATION_H_

#include <string>

#include "base/files.h"

namespace sublet::server {

// The earliest layout that can be brought to the present one.
inline constexpr int kEarliestLayout = 5;

// `from`: the layout of the database at `path`, which no other program may have open; from
// kEarliestLayout to kSchemaVersion - 1. Returns the path of the old database, PATH.layout-FROM:
// the server that made it still can use it under its old name. Needs as much disk space as the
// database has. Throws StoreError; then the database is the old one, or, if the last sync failed,
// perhaps the new one.
std::string migrate(Files& files, const std::string& path, int from);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_MIGRATION_H_
