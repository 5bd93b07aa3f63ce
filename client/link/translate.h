// Translates between the IDL's types and ours. Included only by corba_server.cc and
// executing_client.cc. Any thread.
#ifndef SUBLET_CLIENT_LINK_TRANSLATE_H_
#define SUBLET_CLIENT_LINK_TRANSLATE_H_

#include <functional>
#include <string>

#include "base/octets.h"
#include "client/attempts/order_desk.h"
#include "client/link/server_calls.h"
#include "executing_client.hh"
#include "execution_server.hh"
#include "job/idl/eviction.h"
#include "job/idl/translation.h"
#include "machine_allocator.hh"
#include "spool.hh"

namespace sublet::client {

namespace idl = ::Sublet::v1;

inline idl::AttemptKey to_idl(const AttemptName& name) { return {name.job, name.attempt}; }
inline AttemptName from_idl(const idl::AttemptKey& key) { return {key.job, key.attempt}; }

idl::MachineDescription to_idl(const MachineFacts& facts);
// Without the rest of the state, which goes only to a server that serves it: the logins with
// renewals, speed and load with every report.
idl::MachineReport to_idl(const MachineState& state);
void add_logins(const LoginsReport& logins, idl::MachineReport& report);
void add_speed(const MachineState& state, idl::MachineReport& report);
void add_ahead(const MachineState& state, idl::MachineReport& report);
LoginsAnswer logins_from(const idl::RenewAnswer& answer);
// What of AttemptStatus the server serves.
struct KeptOfStatuses {
  bool disk = true;
  bool waits = true;
  bool at_risk = true;
  bool message = true;
};
idl::AttemptStatus to_idl(const HeldAttempt& held, const KeptOfStatuses& kept);
// keeps_ran: the server serves StartReport.ran_ms.
idl::StartReport to_idl(const AttemptStart& start, bool keeps_ran);
// What the server keeps of an end; it refuses what it does not know.
struct KeptOfEnds {
  bool steps = true;  // of evictions
  bool peaks = true;  // of processes and disk
  bool memory_short = true;
  bool network = true;
  bool staging = true;
};
idl::EndReport to_idl(const AttemptEnd& end, const KeptOfEnds& kept);
RunOrder from_idl(const idl::RunOrder& order);
// A sentence why this client cannot serve the order or requirements; empty: it can.
std::string not_served(const idl::RunOrder& order);
std::string not_served(const idl::Requirements& needs);
idl::RunAnswer to_idl(const RunAnswer& answer);
std::vector<AttemptVerdict> from_idl(const idl::Verdicts& verdicts);

// Makes a call; converts exceptions of the IDL and the ORB to ServerError.
void guard_call(const std::function<void()>& call);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_TRANSLATE_H_
