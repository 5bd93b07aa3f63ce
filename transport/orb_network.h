// What is between the ORB and the network: the server's doors and the client's
// way to its server, TLS by way of a TlsRelay. For transport/orb.cc.
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
  // Throws OrbError: credentials that cannot be used.
  explicit OrbNetwork(const OrbSettings& settings);

  // Any thread. Not valid: no connection; failure() says why.
  UniqueFd dial(int timeout_ms);
  std::optional<DialFailure> failure() const;
  // With which later connections are made. Throws TlsError.
  void use(const TlsCredentials& credentials);

  // Lets members in from now on, the ORB listening already. Throws OrbError.
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
  std::unique_ptr<TlsDoor> door_;
  std::unique_ptr<LoopbackDoor> loopback_;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_ORB_NETWORK_H_
