#include "server/store/sqlite_process.h"

#include <sqlite3.h>

#include <mutex>

namespace sublet::server {

void set_up_sqlite() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Each connection is one thread's at a time (the committer's, or whose turn it
    // is at the archive), so it needs no lock of its own around every call; and
    // nobody asks how much memory SQLite uses, a count that takes one lock for all
    // connections at each allocation. Refused where SQLite runs already: slower,
    // and as good.
    sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  });
}

}  // namespace sublet::server
