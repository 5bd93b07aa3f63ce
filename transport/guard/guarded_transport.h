// The guarded transport: replaces omniORB's own Unix transport. For every connection
// over a Unix socket, accepted or opened, the peer is identified by the kernel, limits
// apply, and all received data passes through GiopFilter before the ORB sees it.
// References and addresses remain "giop:unix:", so unmodified clients can connect.
//
// A connection over TLS is a Unix socket, too: transport/tls/relay.h is at its other
// end, and the guard is given the identity of the peer.
//
// Shared state is in transport/guard/guard_state.h, that of each connection in
// transport/guard/connection_guard.h.
//
// Only transport/orb.cc and orb_network.cc use this. It subclasses internal classes
// of omniORB 4.2.5: rebuild and run the tests with each version of the ORB.
// Thread-safe once installed.
#ifndef SUBLET_TRANSPORT_GUARD_GUARDED_TRANSPORT_H_
#define SUBLET_TRANSPORT_GUARD_GUARDED_TRANSPORT_H_

#include <string>

#include "base/unique_fd.h"
#include "transport/guard/guard_state.h"
#include "transport/peer.h"

namespace sublet {

// Replaces the ORB's Unix transport. Adds the end point "giop:unopened:" for
// processes that do not listen. To be called once per process, before ORB_init; the
// settings are valid until the process ends.
void install_guarded_transport(const GuardSettings& settings);

GuardCounters guard_counters();

// Passes a connection to the ORB that was accepted and authenticated elsewhere. False:
// refused because of a limit, or there is no listener (any more).
bool guard_hand_in(UniqueFd socket, const Peer& peer);

// The peer of the connection with these peerdetails(); null if it is not a guarded one.
const Peer* guard_peer(void* peerdetails);

// Why the last end point could not be set up; empty if none failed.
std::string guard_error();

// Writes a line to the log; at most ten a second, including those of the guard.
void guard_report(const std::string& line);

// Called at the start of an upcall: whether the connection with these peerdetails()
// has really received a new request. False: the ORB failed internally (an assertion),
// did not remove the request from its buffer and found it again, which would repeat
// forever. The connection is then closed; the caller must throw a
// CORBA::SystemException, which makes the ORB drop the request.
bool guard_call_is_new(void* peerdetails);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_GUARDED_TRANSPORT_H_
