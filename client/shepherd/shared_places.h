// The places where a job could leave memory or files behind that outlive its
// processes: /dev/shm and System V IPC become its own and go with its last
// process; /tmp and /var/tmp are swept at the end. Only for root's shepherds:
// without root the job is the client's own account, whose things these are.
#ifndef SUBLET_CLIENT_SHEPHERD_SHARED_PLACES_H_
#define SUBLET_CLIENT_SHEPHERD_SHARED_PLACES_H_

#include <stdint.h>
#include <time.h>

#include "attempt/format.h"

namespace sublet::shepherd {

// In the child, while it is root, in the attempt's folder. A kernel or container
// that refuses namespaces leaves things as they are. Null, or the step that failed.
const char* keep_shared_memory_apart(const sublet_order& order);

class TemporaryFolders {
 public:
  // Before the job starts.
  void note();
  // After its end. Removes what belongs to `uid`, files and empty folders, directly
  // in /tmp and /var/tmp; looks at no more than 4096 names in each, and at none
  // where no name has come or gone since note().
  void sweep(int64_t uid) const;

 private:
  // When names last came or went; 0: just now, so that the next change may bear the
  // same instant.
  timespec changed_[2] = {};
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_SHARED_PLACES_H_
