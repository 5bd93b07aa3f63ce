// What this machine cannot keep from jobs, because its kernel, or the container or service in
// which the client runs, does not permit it.
#ifndef SUBLET_CLIENT_MACHINE_MISSING_WALLS_H_
#define SUBLET_CLIENT_MACHINE_MISSING_WALLS_H_

#include <string>
#include <vector>

#include "attempt/walls_trial.h"

namespace sublet::client {

// A sentence for each part that is missing, which says what jobs can do for lack of it. With root
// and without. Main thread.
std::vector<std::string> missing_walls(const WallsTrial& walls);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_MISSING_WALLS_H_
