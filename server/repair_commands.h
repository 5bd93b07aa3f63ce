// `sublet-server check`, `salvage` and `replay`. They print what they find and return the
// exit status. Main thread.
#ifndef SUBLET_SERVER_REPAIR_COMMANDS_H_
#define SUBLET_SERVER_REPAIR_COMMANDS_H_

#include "server/settings.h"

namespace sublet::server {

// Database, spool and history; `bytes`: also the bytes of all files in the spool. 0: nothing is
// damaged; 1: something is. A server may be running. Throws StoreError.
int check_pool(const ServerSettings& settings, bool bytes);
// 0: the database is whole now, perhaps without rows that could not be read. No server may be
// running. Throws StoreError, FileError; then nothing was changed.
int salvage_pool(const ServerSettings& settings);
// All files of events, oldest first. 0: each leads to the records in the next one; 1: one does
// not, or cannot be replayed. A server may be running. Throws StoreError, FileError.
int replay_history(const ServerSettings& settings);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_REPAIR_COMMANDS_H_
