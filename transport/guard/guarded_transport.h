// The guarded transport: takes the place of omniORB's own Unix transport, so
// that every connection over a Unix socket, accepted or dialled, is known by
// the kernel's word for who is at the other end, is counted against limits,
// and has each byte it brings judged by GiopFilter before the ORB sees it.
// References and addresses stay "giop:unix:": unmodified clients reach it.
//
// A connection over TLS comes as a Unix socket too: transport/tls/relay.h stands at
// its other end, and the guard is told who is behind it.
//
// What the connections share is in transport/guard/guard_state.h, what is done to each in
// transport/guard/connection_guard.h.
//
// Only transport/orb.cc and orb_network.cc use this. It subclasses internal classes
// of omniORB 4.2.5: rebuild and run the tests with each version of the ORB.
// Threads: any, once installed.
#ifndef SUBLET_TRANSPORT_GUARD_GUARDED_TRANSPORT_H_
#define SUBLET_TRANSPORT_GUARD_GUARDED_TRANSPORT_H_

#include <string>

#include "base/unique_fd.h"
#include "transport/guard/guard_state.h"
#include "transport/peer.h"

namespace sublet {

// Replaces the ORB's Unix transport. Adds the end point "giop:unopened:" for
// processes that do not listen. Once per process, before ORB_init; the
// settings then hold until the process ends.
void install_guarded_transport(const GuardSettings& settings);

GuardCounters guard_counters();

// Gives the ORB a connection that was accepted and checked elsewhere. False:
// refused because of a limit, or there is no listener (any more).
bool guard_hand_in(UniqueFd socket, const Peer& peer);

// Who is at the other end of the connection with these peerdetails(); null for
// none of ours.
const Peer* guard_peer(void* peerdetails);

// Why the last end point could not be set up; empty if none failed.
std::string guard_error();

// Passes a line to the log, at most ten a second with those of the guard.
void guard_report(const std::string& line);

// Tells, at the start of an upcall, whether the connection with these
// peerdetails() really brought one more request. False: the ORB failed inside
// (a broken assertion), left the request where it was and found it again, as it
// would for ever. The connection is then closed; the caller throws a
// CORBA::SystemException, which makes the ORB drop the request.
bool guard_call_is_new(void* peerdetails);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_GUARD_GUARDED_TRANSPORT_H_
