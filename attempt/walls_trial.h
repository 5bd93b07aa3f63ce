// Whether this kernel, and the container or service in which we run, lets jobs have walls
// (client/shepherd/walls/places.h). Any thread; it takes about a millisecond.
#ifndef SUBLET_ATTEMPT_WALLS_TRIAL_H_
#define SUBLET_ATTEMPT_WALLS_TRIAL_H_

namespace sublet {

struct WallsTrial {
  // What could not be made: "namespaces", "mounts"; null: nothing.
  const char* failed = nullptr;
  int error = 0;  // errno
  // What more is wanted for jobs without network, and could not be made: "network namespaces",
  // "loopback"; or `failed`; null: nothing.
  const char* network_failed = failed;
  int network_error = error;
  bool possible() const { return failed == nullptr; }
  bool can_cut_network() const { return network_failed == nullptr; }
};

// Has a child process make what the walls of a job consist of.
WallsTrial try_walls();

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_WALLS_TRIAL_H_
