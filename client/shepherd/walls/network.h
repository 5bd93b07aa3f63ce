// The network of a job that may reach none: only itself, at the loopback addresses.
#ifndef SUBLET_CLIENT_SHEPHERD_WALLS_NETWORK_H_
#define SUBLET_CLIENT_SHEPHERD_WALLS_NETWORK_H_

namespace sublet::shepherd {

// In a new network namespace, with its capabilities. False with errno.
bool start_loopback();

}  // namespace sublet::shepherd

#endif  // SUBLET_CLIENT_SHEPHERD_WALLS_NETWORK_H_
