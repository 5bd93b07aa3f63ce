// The way to a pool's server over TLS: as a member, or with a token as one who
// wants to become one. Any thread; each call waits as long as it is told to, and
// for the resolver of host names as long as that takes.
#ifndef SUBLET_TRANSPORT_TLS_DIAL_H_
#define SUBLET_TRANSPORT_TLS_DIAL_H_

#include <memory>
#include <stdexcept>
#include <string>

#include "base/unique_fd.h"
#include "transport/membership.h"
#include "transport/tls/session.h"

namespace sublet {

// Nobody reached, or one side would not have the other; code and advice as in
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

// A session in which the server has said welcome. Throws DialError; TlsError.
TlsSession dial_server(const HostPort& server, std::shared_ptr<const TlsContext> context,
                       int timeout_ms);

struct Membership {
  HostPort server;
  TlsCredentials credentials;
};

// Exchanges the token for a certificate of this key. The same token with the
// same key again gets the same membership, so that a lost answer costs nothing.
// Throws DialError, also when what came is not good or not what the token promised;
// TlsError.
Membership join_pool(const JoinToken& token, const std::string& key, int timeout_ms);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_DIAL_H_
