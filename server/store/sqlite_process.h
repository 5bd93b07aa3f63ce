// SQLite's settings for the whole process.
#ifndef SUBLET_SERVER_SQLITE_PROCESS_H_
#define SUBLET_SERVER_SQLITE_PROCESS_H_

namespace sublet::server {

// Before the first connection is opened; later calls change nothing. Any thread.
void set_up_sqlite();

}  // namespace sublet::server

#endif  // SUBLET_SERVER_SQLITE_PROCESS_H_
