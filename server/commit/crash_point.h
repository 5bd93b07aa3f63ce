// Places where a test can crash the server, to show that a crash between any two
// steps of a job's life loses nothing and repeats nothing. Inactive (one
// comparison) unless the setting debug.crash_at names a place.
#ifndef SUBLET_SERVER_COMMIT_CRASH_POINT_H_
#define SUBLET_SERVER_COMMIT_CRASH_POINT_H_

#include <string>

namespace sublet::server {

// where: "PLACE:N": kill the process with SIGKILL when PLACE is reached for the Nth
// time (from 1). Empty: never. Call once, before any thread starts. Places: commit
// (before a transaction), committed, reply, reserved (a large batch is committed, none of its
// slices), slice (after one of them), dispatch (before an order is sent),
// dispatched (answered, not recorded), report (an end was reported, not recorded),
// reported (recorded, not answered), history (old uses are written to their file,
// not yet deleted), moved (the same for finished jobs), events (the same for events),
// anchored (a new file of events is on disk), set_aside (what can be read of a damaged table was
// copied).
void set_crash_point(const std::string& where);
void crash_point(const char* place);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_COMMIT_CRASH_POINT_H_
