// Places where a job could leave memory or files that outlive its processes: it gets
// its own /dev/shm and System V IPC namespace, which vanish with its last process; /tmp
// and /var/tmp are swept at its end. Only if the shepherd is root: otherwise the job
// runs under the client's own account, and other files there belong to it, too.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_PLACES_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_PLACES_H_

#include <stdint.h>
#include <time.h>

#include "attempt/format.h"

namespace sublet::shepherd {

// To be called in the child, while it is root, in the attempt's folder. Does nothing if
// the kernel or container does not permit namespaces. Returns null, or the step that
// failed.
const char* keep_shared_memory_apart(const sublet_order& order);

class TemporaryFolders {
 public:
  // Before the job starts: notes when the folders last changed.
  void note();
  // After its end: removes files and empty folders of `uid` directly in /tmp and
  // /var/tmp. Examines at most 4096 entries of each, and none if the folder has not
  // changed since note().
  void sweep(int64_t uid) const;

 private:
  // Modification times; 0 if so recent that the next change might have the same time.
  timespec changed_[2] = {};
};

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_PLACES_H_
