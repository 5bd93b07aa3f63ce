// Connects to a pool's server over TLS, as a member or, with a token, to become one.
// Any thread; each call blocks for at most its timeout, plus the time for resolving
// the host name, which is not limited.
#ifndef SUBLET_TRANSPORT_TLS_DIAL_H_
#define SUBLET_TRANSPORT_TLS_DIAL_H_

#include <memory>
#include <stdexcept>
#include <string>

#include "base/unique_fd.h"
#include "transport/membership.h"
#include "transport/tls/session.h"

namespace sublet {

// The server was not reached, or one side refused the other; code and advice as in
// docs/errors.md.
class DialError : public std::runtime_error {
 public:
  DialError(std::string code, const std::string& message, std::string advice)
      : std::runtime_error(message), code_(std::move(code)), advice_(std::move(advice)) {}
  const std::string& code() const { return code_; }
  const std::string& advice() const { return advice_; }

 private:
  std::string code_;
  std::string advice_;
};

// A session in which the server has accepted us. Throws DialError; TlsError.
TlsSession dial_server(const HostPort& server, std::shared_ptr<const TlsContext> context,
                       int timeout_ms);

struct Membership {
  HostPort server;
  TlsCredentials credentials;
};

// Exchanges the token for a certificate of this key. Repeating it with the same token
// and key gets the same membership, so that a lost answer does no harm. Throws
// DialError, also if the certificate is invalid or not as specified by the token;
// TlsError.
Membership join_pool(const JoinToken& token, const std::string& key, int timeout_ms);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_DIAL_H_
