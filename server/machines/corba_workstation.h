// A workstation that is called through the object reference of its Executing Client.
// The calls use the connection that the client opened; each has a time-out.
#ifndef SUBLET_SERVER_MACHINES_CORBA_WORKSTATION_H_
#define SUBLET_SERVER_MACHINES_CORBA_WORKSTATION_H_

#include <memory>
#include <string>
#include <utility>

#include "executing_client.hh"
#include "server/machines/dispatcher.h"

namespace sublet::server {

// Sent with every call, so that the client can check that the call is for its current
// registration and that this server has not been replaced.
struct CallingServer {
  std::string session;
  uint64_t term = 0;
};

std::shared_ptr<Workstation> make_corba_workstation(Sublet::v1::ExecutingClient_ptr client,
                                                    const CallingServer& self, int64_t lease_ms,
                                                    int call_timeout_ms);

// The answer and reason for all orders of a call of `run` that failed with this exception.
std::pair<scheduling::OrderAnswered::Answer, std::string> meaning_for_orders(
    const CORBA::Exception& failure);

// The answer to this order among the replies of a call.
scheduling::OrderAnswered answer_for(scheduling::AttemptKey key,
                                     const Sublet::v1::RunAnswers& replies);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MACHINES_CORBA_WORKSTATION_H_
