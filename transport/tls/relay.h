// Carries bytes between TLS connections and the plain local sockets that the
// ORB is given in their place. The ORB's own TLS classes use one SSL object from
// two threads at a time as soon as calls go both ways over a connection, which
// OpenSSL forbids; here one thread has them all (docs/transport.md).
//
// Any thread. What is taken is the relay's until either side ends.
#ifndef SUBLET_TRANSPORT_TLS_RELAY_H_
#define SUBLET_TRANSPORT_TLS_RELAY_H_

#include <cstdint>
#include <memory>

#include "base/unique_fd.h"
#include "transport/tls/session.h"

namespace sublet {

class TlsRelay {
 public:
  // last_words_ms: once the plain end has closed, how long its peer may take for
  // what is still under way. Throws OsError: no descriptors.
  explicit TlsRelay(int last_words_ms = 10'000);
  // Ends what it carries.
  ~TlsRelay();
  TlsRelay(const TlsRelay&) = delete;
  TlsRelay& operator=(const TlsRelay&) = delete;

  // Takes over a session that is past its handshake. Returns the plain end, a
  // blocking stream socket; not valid, with the session ended, if descriptors
  // are short.
  UniqueFd take(TlsSession session, uint64_t member);
  // Ends all sessions that were taken under this number.
  void cut(uint64_t member);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_RELAY_H_
