// A workstation reached through its Executing Client's reference. The calls go
// over the connection that the client opened; each has a time-out.
#ifndef SUBLET_SERVER_CORBA_WORKSTATION_H_
#define SUBLET_SERVER_CORBA_WORKSTATION_H_

#include <memory>
#include <string>
#include <utility>

#include "executing_client.hh"
#include "server/machines/dispatcher.h"

namespace sublet::server {

// session: sent with every call, so that the client knows its own registration.
std::shared_ptr<Workstation> make_corba_workstation(Sublet::v1::ExecutingClient_ptr client,
                                                    const std::string& session, int64_t lease_ms,
                                                    int call_timeout_ms);

// What an exception of the call `run` says about its orders.
std::pair<scheduling::OrderAnswered::Answer, std::string> meaning_for_orders(
    const CORBA::Exception& failure);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_CORBA_WORKSTATION_H_
