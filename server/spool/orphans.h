// Orphans: files in the spool folder that no content in the database refers to. A crash
// between storing a content and committing its row leaves one. So does a database that was
// moved away or restored from an old backup, and then an orphan may be the only copy of
// somebody's work. Nothing is deleted at once: orphans go to `orphans/DATE/` in the spool
// folder, and come back when a database that knows them is started.
//
// Threads: any, before the folder is used.
#ifndef SUBLET_SERVER_SPOOL_ORPHANS_H_
#define SUBLET_SERVER_SPOOL_ORPHANS_H_

#include <cstdint>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/files.h"
#include "server/commit/store.h"

namespace sublet::server {

// How long orphans are kept; counted in whole days, UTC.
constexpr int kKeepOrphansDays = 30;

// Throws StoreError, which says what to do, if the database is missing or an empty file but the
// spool has contents, which a new one would not know, or the database's log has its newest
// commits, which opening a new one would delete.
void require_database(Files& files, const std::string& database, const std::string& spool);

// For a database that has never been used: throws StoreError, which says what to do, if the spool
// has contents.
void require_empty_spool(Files& files, const std::string& spool);

// Sets one content aside that nobody needs any more but that could not be read. Throws FileError.
void set_orphan_aside(Files& files, const std::string& spool, const std::string& name, Micros now);

// Brings back known contents that are missing, sets orphans aside, removes unfinished uploads
// and what was set aside more than kKeepOrphansDays before `now`. `known`: the names of the
// contents in the database. Logs what it moved. Throws FileError.
void sort_out_orphans(Files& files, const std::string& spool, const std::set<std::string>& known,
                      Micros now);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SPOOL_ORPHANS_H_
