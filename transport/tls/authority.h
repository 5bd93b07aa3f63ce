// The certificates of a pool, with OpenSSL: EC P-256 keys, an authority's own
// certificate, those it issues to members, and the contents of certificates. All
// texts are PEM. Any thread; stateless.
//
// The holder's identity is a URI in the certificate's subject alternative name:
// transport/membership.h.
#ifndef SUBLET_TRANSPORT_TLS_AUTHORITY_H_
#define SUBLET_TRANSPORT_TLS_AUTHORITY_H_

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/hash.h"
#include "transport/membership.h"

namespace sublet {

class TlsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct CertificateAndKey {
  std::string certificate;
  std::string key;
};

// From and until, microseconds UTC; stored in whole seconds.
struct Validity {
  int64_t from = 0;
  int64_t until = 0;
};

// The contents of a certificate, not checked against an authority.
struct CertificateFacts {
  std::optional<MemberName> member;  // none: it names no member, or more than one
  std::string serial;                // hex
  Validity validity;
  Digest fingerprint{};  // of the whole certificate
};

std::string make_key();
// Throws TlsError: not a valid name of a pool.
CertificateAndKey make_authority(const std::string& pool, const Validity& validity);
// The certificate request of a new member: its public key, signed by itself.
std::string make_request(const std::string& key);
// The digest of a request's public key. Throws TlsError: not a request, not signed by
// its own key, or the key is not EC P-256.
Digest key_of_request(const std::string& request);
// Throws TlsError as key_of_request does, or if the authority is unusable.
std::string issue_certificate(const CertificateAndKey& authority, const std::string& request,
                              const MemberName& member, const Validity& validity);
// Throws TlsError: not a certificate.
CertificateFacts read_certificate(const std::string& certificate);

bool equal_in_constant_time(const std::string& a, const std::string& b);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_AUTHORITY_H_
