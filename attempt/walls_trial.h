// Whether this kernel, and the container or service in which we run, lets jobs have walls
// (client/shepherd/walls/places.h). Any thread; it takes about a millisecond.
#ifndef SUBLET_ATTEMPT_WALLS_TRIAL_H_
#define SUBLET_ATTEMPT_WALLS_TRIAL_H_

namespace sublet {

struct WallsTrial {
  // What could not be made: "namespaces", "mounts", "loopback"; null: nothing.
  const char* failed = nullptr;
  int error = 0;  // errno
  // If all of that could be made, but no network namespace: errno.
  int network_error = 0;
  bool possible() const { return failed == nullptr; }
  bool can_cut_network() const { return possible() && network_error == 0; }
};

// Has a child process make what the walls of a job consist of.
WallsTrial try_walls();

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_WALLS_TRIAL_H_
