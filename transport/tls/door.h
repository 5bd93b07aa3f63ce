// The server's door to the network: listens on a TCP port, performs the TLS handshake
// and admits the members of the pool. Unauthenticated connections ("strangers") have
// a time limit and their own limits on number, in total and per address, so that they
// cannot displace members; when a limit is reached the oldest one is closed. Join
// requests of newcomers with a token are answered here and not passed on.
//
// Two threads: one for all strangers, one for join requests. The hooks are called
// from them.
#ifndef SUBLET_TRANSPORT_TLS_DOOR_H_
#define SUBLET_TRANSPORT_TLS_DOOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "transport/membership.h"
#include "transport/tls/joining.h"
#include "transport/tls/session.h"

namespace sublet {

struct DoorSettings {
  HostPort at;  // where to listen; host "0.0.0.0" or "[::]": everywhere
  TlsCredentials credentials;
  int patience_ms = 5000;         // for one stranger, from connecting to the end
  size_t strangers = 256;         // at a time
  size_t strangers_of_host = 16;  // from one address
  int joins_per_second = 10;      // further ones are asked to try later
  size_t joins_waiting = 32;
};

struct Admission {
  Exclusion excluded = Exclusion::kNone;
  uint64_t member = 0;  // its number
  int64_t joined = 0;   // when it joined; differs if a member with this number joins again
};

struct DoorHooks {
  // Decides on a certificate that is of our authority, currently valid, of our pool
  // and not a server's. Must not block.
  std::function<Admission(const MemberName&, const std::string& serial)> admit;
  // Receives an admitted member after the greeting. Must not block.
  std::function<void(TlsSession, const Admission&, const TlsPeer&)> arrived;
  // Answers a newcomer; one at a time.
  std::function<JoinAnswer(const JoinRequest&)> join;
  // A line for the log; not rate-limited.
  std::function<void(std::string_view)> log;
};

class TlsDoor {
 public:
  // Listens when it returns. Throws OsError: the port is in use or not permitted, or
  // the address is not of this host; TlsError: unusable credentials.
  TlsDoor(const DoorSettings& settings, DoorHooks hooks);
  // Stops accepting connections; returns when no hook is running.
  ~TlsDoor();
  TlsDoor(const TlsDoor&) = delete;
  TlsDoor& operator=(const TlsDoor&) = delete;

  // The port it listens on; chosen by the system if 0 was requested.
  uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_DOOR_H_
