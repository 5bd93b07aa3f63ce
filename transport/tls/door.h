// The server's door to the network: listens on a TCP port, shakes hands with
// whoever comes, and lets in the members of the pool. Strangers have a time
// limit and places of their own, in all and for each address, so that they can
// take none from members; when those are full the one who has waited longest
// goes. Newcomers with a token are
// answered here; none of their bytes goes anywhere else.
//
// Two threads: one for all strangers, one for what newcomers ask. Only their
// hooks are called from them.
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
  int patience_ms = 5000;         // for one stranger, from his first byte to his last
  size_t strangers = 256;         // at a time
  size_t strangers_of_host = 16;  // of one address
  int joins_per_second = 10;      // more are asked to try later
  size_t joins_waiting = 32;
};

struct Admission {
  Exclusion excluded = Exclusion::kNone;
  uint64_t member = 0;  // the number under which it is known
  int64_t joined = 0;   // when it did; who joins again is another under the same number
};

struct DoorHooks {
  // Decides on a certificate that is of our authority, in time, of our pool and
  // not a server's. Must not block.
  std::function<Admission(const MemberName&, const std::string& serial)> admit;
  // A member, greeted. Must not block.
  std::function<void(TlsSession, const Admission&, const TlsPeer&)> arrived;
  // Answers a newcomer; one at a time.
  std::function<JoinAnswer(const JoinRequest&)> join;
  // A line for the log; any number a second.
  std::function<void(std::string_view)> log;
};

class TlsDoor {
 public:
  // Listens when it returns. Throws OsError: the port is taken or not allowed,
  // the address not ours; TlsError: credentials that do not fit.
  TlsDoor(const DoorSettings& settings, DoorHooks hooks);
  // Lets nobody else in; returns when no hook is running.
  ~TlsDoor();
  TlsDoor(const TlsDoor&) = delete;
  TlsDoor& operator=(const TlsDoor&) = delete;

  // Where it listens: as asked for, with the port chosen if that was 0.
  uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_DOOR_H_
