// A workstation reached through its Executing Client's reference. The calls go
// over the connection that the client opened; each has a time-out.
#ifndef SUBLET_SERVER_MACHINES_CORBA_WORKSTATION_H_
#define SUBLET_SERVER_MACHINES_CORBA_WORKSTATION_H_

#include <memory>
#include <string>
#include <utility>

#include "executing_client.hh"
#include "server/machines/dispatcher.h"

namespace sublet::server {

// What every call carries: by which the client knows its own registration, and that
// this server has not been replaced.
struct CallingServer {
  std::string session;
  uint64_t term = 0;
};

std::shared_ptr<Workstation> make_corba_workstation(Sublet::v1::ExecutingClient_ptr client,
                                                    const CallingServer& self, int64_t lease_ms,
                                                    int call_timeout_ms);

// What an exception of the call `run` says about its orders.
std::pair<scheduling::OrderAnswered::Answer, std::string> meaning_for_orders(
    const CORBA::Exception& failure);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MACHINES_CORBA_WORKSTATION_H_
