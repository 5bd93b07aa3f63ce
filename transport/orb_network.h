// Connects the ORB to the network: the server's doors and the client's connections to
// its server, with TLS handled by a TlsRelay. For transport/orb.cc.
#ifndef SUBLET_TRANSPORT_ORB_NETWORK_H_
#define SUBLET_TRANSPORT_ORB_NETWORK_H_

#include <memory>
#include <mutex>
#include <optional>

#include "transport/loopback_door.h"
#include "transport/orb.h"
#include "transport/tls/dial.h"
#include "transport/tls/door.h"
#include "transport/tls/relay.h"

namespace sublet {

class OrbNetwork {
 public:
  // Throws OrbError: unusable credentials.
  explicit OrbNetwork(const OrbSettings& settings);

  // Any thread. An invalid descriptor: no connection; failure() gives the reason.
  UniqueFd dial(int timeout_ms);
  std::optional<DialFailure> failure() const;
  // Of the last connection, in numbers; none: there was none.
  std::optional<HostPort> peer() const;
  // Sets the credentials for later connections. Throws TlsError.
  void use(const TlsCredentials& credentials);

  // Starts to admit members; the ORB must be listening. Throws OrbError.
  void open_doors();
  void close_doors();
  uint16_t port() const { return door_ ? door_->port() : 0; }
  uint16_t loopback_port() const { return loopback_ ? loopback_->port() : 0; }
  void cut(uint64_t id) { relay_.cut(id); }

 private:
  void open_loopback();
  void arrived(TlsSession session, const Admission& admission, const TlsPeer& peer);

  const OrbSettings settings_;
  TlsRelay relay_;
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsContext> context_;  // of a member
  std::optional<DialFailure> failure_;
  std::optional<HostPort> peer_;
  std::unique_ptr<TlsDoor> door_;
  std::unique_ptr<LoopbackDoor> loopback_;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_ORB_NETWORK_H_
