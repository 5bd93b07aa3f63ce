// What the jobs of this machine may reach over the network: what its owner permits, what the
// machine can keep, and what a job wishes. Any thread.
#ifndef SUBLET_CLIENT_MACHINE_NETWORK_RULES_H_
#define SUBLET_CLIENT_MACHINE_NETWORK_RULES_H_

#include <string>

#include "job/network.h"

namespace sublet::client {

struct NetworkRules {
  Network most = Network::kAny;  // the owner's setting
  // The pool's server is on this machine, at a socket that jobs reach through the file system if at
  // all: those that may reach only the server reach nothing else.
  bool server_is_here = true;
  bool can_have_own = false;       // jobs can have a network that is their own, with only loopback
  bool can_watch_traffic = false;  // AttemptCgroups::can_watch_traffic

  // What a job with this wish gets: kNone, kServer or kAny.
  Network of(Network wish) const;
  // "", or why a job with this wish cannot run here.
  std::string lacking(Network wish) const;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_MACHINE_NETWORK_RULES_H_
