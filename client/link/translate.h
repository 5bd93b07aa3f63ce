// Translates between the contract's types and ours, all in one place. Included by
// corba_server.cc and executing_client.cc alone. Any thread.
#ifndef SUBLET_CLIENT_TRANSLATE_H_
#define SUBLET_CLIENT_TRANSLATE_H_

#include <cstring>
#include <functional>
#include <string>

#include "client/attempts/order_desk.h"
#include "client/link/server_calls.h"
#include "executing_client.hh"
#include "execution_server.hh"
#include "machine_allocator.hh"
#include "spool.hh"

namespace sublet::client {

namespace idl = ::Sublet::v1;

template <typename Octets>
std::string to_string(const Octets& octets) {
  std::string out(octets.length(), '\0');
  for (CORBA::ULong i = 0; i < octets.length(); ++i) out[i] = static_cast<char>(octets[i]);
  return out;
}

template <typename Octets>
void to_octets(const void* bytes, size_t count, Octets& out) {
  out.length(static_cast<CORBA::ULong>(count));
  if (count > 0) std::memcpy(out.get_buffer(), bytes, count);
}

inline idl::AttemptKey to_idl(const AttemptName& name) { return {name.job, name.attempt}; }
inline AttemptName from_idl(const idl::AttemptKey& key) { return {key.job, key.attempt}; }

idl::MachineDescription to_idl(const MachineFacts& facts);
idl::MachineReport to_idl(const MachineState& state);
idl::AttemptStatus to_idl(const HeldAttempt& held);
idl::StartReport to_idl(const AttemptStart& start);
idl::EndReport to_idl(const AttemptEnd& end);
RunOrder from_idl(const idl::RunOrder& order);
Needs from_idl(const idl::Requirements& needs);
idl::RunAnswer to_idl(const RunAnswer& answer);
std::vector<AttemptVerdict> from_idl(const idl::Verdicts& verdicts);

// Runs a call; whatever it throws of the contract or the ORB leaves as a
// ServerError.
void guard_call(const std::function<void()>& call);

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_TRANSLATE_H_
