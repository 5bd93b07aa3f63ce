// The end point "giop:unopened:" of a process that does not listen.
#ifndef SUBLET_TRANSPORT_GUARD_UNOPENED_ENDPOINT_H_
#define SUBLET_TRANSPORT_GUARD_UNOPENED_ENDPOINT_H_

namespace sublet {

// Adds it to the ORB's transports. To be called once per process, before ORB_init.
void install_unopened_endpoint();

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_UNOPENED_ENDPOINT_H_
