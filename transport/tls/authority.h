// The certificates of a pool, by OpenSSL: EC P-256 keys, an authority's own
// certificate, those that it gives to members, and what a certificate says. All
// texts are PEM. Any thread; nothing is kept.
//
// A certificate says who its holder is in one place, a URI in its subject's
// alternative names: transport/membership.h.
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

// From and until, microseconds UTC; kept in whole seconds.
struct Validity {
  int64_t from = 0;
  int64_t until = 0;
};

// What a certificate says; nothing here is checked against an authority.
struct CertificateFacts {
  std::optional<MemberName> member;  // nothing: it names none, or more than one
  std::string serial;                // hex
  Validity validity;
  Digest fingerprint{};  // of the whole certificate
};

std::string make_key();
// Throws TlsError: no pool's name.
CertificateAndKey make_authority(const std::string& pool, const Validity& validity);
// What a newcomer sends: its public key, signed by itself.
std::string make_request(const std::string& key);
// The digest of a request's public key. Throws TlsError: no request, not signed by
// its own key, or the key is not EC P-256.
Digest key_of_request(const std::string& request);
// Throws TlsError as key_of_request does, or when the authority is unusable.
std::string issue_certificate(const CertificateAndKey& authority, const std::string& request,
                              const MemberName& member, const Validity& validity);
// Throws TlsError: not a certificate.
CertificateFacts read_certificate(const std::string& certificate);

bool equal_in_constant_time(const std::string& a, const std::string& b);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_AUTHORITY_H_
