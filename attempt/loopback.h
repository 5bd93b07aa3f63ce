// The network of a job that may reach none: only itself, at the loopback addresses. Compiled into
// the shepherd without the C++ library.
#ifndef SUBLET_ATTEMPT_LOOPBACK_H_
#define SUBLET_ATTEMPT_LOOPBACK_H_

namespace sublet {

// In a new network namespace, with its capabilities. False with errno.
bool start_loopback();

}  // namespace sublet

#endif  // SUBLET_ATTEMPT_LOOPBACK_H_
