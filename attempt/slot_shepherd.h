// A slot's shepherd (client/shepherd/) as the client sees it: a process that runs the slot's
// attempts one after the other. It ends when this object does, or its process, unless an attempt
// runs: then it ends after that. One thread at a time.
#ifndef SUBLET_ATTEMPT_SLOT_SHEPHERD_H_
#define SUBLET_ATTEMPT_SLOT_SHEPHERD_H_

#include <string>

#include "attempt/folder.h"
#include "base/process.h"
#include "base/unique_fd.h"

namespace sublet {

class SlotShepherd {
 public:
  // Starts `program` (sublet-shepherd) for attempts of `state_folder`, in a session of its own. It
  // must be reaped by the caller, or by init after the caller has ended. Throws OsError.
  SlotShepherd(const std::string& program, const std::string& state_folder);

  struct Given {
    // The client's end of the attempt's control connection, non-blocking. At its end of file the
    // shepherd has done with the attempt, or is gone.
    UniqueFd control;
    bool taken = false;  // false: the shepherd has ended
  };
  // Has it run an attempt, whose order has been written, after the one that it runs now. `behind`:
  // the caller has not seen the end of that one; then it is not run if that had to leave, or if
  // `control` has been closed when its turn comes. Throws OsError.
  Given run(const AttemptName& name, bool behind = false);

  const ProcessId& id() const { return process_.id; }

 private:
  UniqueFd link_;
  SpawnedProcess process_;
};

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_SLOT_SHEPHERD_H_
