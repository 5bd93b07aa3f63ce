// Relays data between TLS connections and the plain local sockets that the ORB is
// given instead. With calls in both directions over a connection, the ORB's own TLS
// classes use one SSL object from two threads at a time, which OpenSSL does not allow;
// here one thread handles them all (docs/transport.md).
//
// Any thread. The relay owns a session until either side closes it.
#ifndef SUBLET_TRANSPORT_TLS_RELAY_H_
#define SUBLET_TRANSPORT_TLS_RELAY_H_

#include <cstdint>
#include <memory>

#include "base/unique_fd.h"
#include "transport/tls/session.h"

namespace sublet {

class TlsRelay {
 public:
  // last_words_ms: how long the peer may take to receive the remaining data after the
  // plain end has closed. Throws OsError: no descriptors.
  explicit TlsRelay(int last_words_ms = 10'000);
  // Closes all sessions.
  ~TlsRelay();
  TlsRelay(const TlsRelay&) = delete;
  TlsRelay& operator=(const TlsRelay&) = delete;

  // Takes over a session after its handshake. Returns the plain end, a blocking stream
  // socket; if out of descriptors, it is not valid and the session is closed.
  UniqueFd take(TlsSession session, uint64_t member);
  // Closes all sessions that were taken over with this number.
  void cut(uint64_t member);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_RELAY_H_
