// `sublet-server check` and `sublet-server salvage`. Both print what they find and return the
// exit status. Main thread.
#ifndef SUBLET_SERVER_REPAIR_COMMANDS_H_
#define SUBLET_SERVER_REPAIR_COMMANDS_H_

#include "server/settings.h"

namespace sublet::server {

// Database and spool; `bytes`: also the bytes of all files in the spool. 0: nothing is damaged;
// 1: something is. A server may be running. Throws StoreError.
int check_pool(const ServerSettings& settings, bool bytes);
// 0: the database is whole now, perhaps without rows that could not be read. No server may be
// running. Throws StoreError, FileError; then nothing was changed.
int salvage_pool(const ServerSettings& settings);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_REPAIR_COMMANDS_H_
