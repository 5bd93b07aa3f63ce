// Places where a test may have the server die, to show that a death between
// any two steps of a job's way loses nothing and does nothing twice. Inactive
// (one comparison) unless the setting debug.crash_at names a place.
#ifndef SUBLET_SERVER_COMMIT_CRASH_POINT_H_
#define SUBLET_SERVER_COMMIT_CRASH_POINT_H_

#include <string>

namespace sublet::server {

// where: "PLACE:N", die with SIGKILL when PLACE is reached for the Nth time
// (from 1). Empty: never. Once, before any thread starts. Places: commit
// (before a transaction), committed, reply, dispatch (before an order goes out),
// dispatched (answered, not recorded), report (an end arrived, not recorded),
// reported (recorded, not answered), history (old uses are in their file, not yet
// deleted).
void set_crash_point(const std::string& where);
void crash_point(const char* place);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_COMMIT_CRASH_POINT_H_
