// Replaces a pool's database by a changed copy: an error or a loss of power at any moment
// leaves the old database or the new one, never something in between.
#ifndef SUBLET_SERVER_STORE_REPLACEMENT_H_
#define SUBLET_SERVER_STORE_REPLACEMENT_H_

#include <functional>
#include <string>

#include "base/files.h"

namespace sublet::server {

// make(copy) creates the new database at the path `copy`, with the old one at `path` complete
// in its own file (no log). Afterwards the old one is at the path `kept`, which is replaced if
// it exists. Nobody else may have the database open. Throws FileError, and what make() throws;
// then the database is the old one, or, if the last sync failed, perhaps the new one.
void replace_database(Files& files, const std::string& path, const std::string& kept,
                      const std::function<void(const std::string& copy)>& make);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STORE_REPLACEMENT_H_
