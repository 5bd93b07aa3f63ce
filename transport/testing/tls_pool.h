// A pool's authority and the certificates of members, for tests.
#ifndef SUBLET_TRANSPORT_TESTING_TLS_POOL_H_
#define SUBLET_TRANSPORT_TESTING_TLS_POOL_H_

#include <string>

#include "base/clock.h"
#include "transport/tls/authority.h"
#include "transport/tls/session.h"

namespace sublet::testing {

class TlsPool {
 public:
  explicit TlsPool(const std::string& name = "lab")
      : name_(name), authority_(make_authority(name, from_now(-kHour, 24 * kHour))) {}

  const CertificateAndKey& authority() const { return authority_; }

  // Valid from and until, relative to now.
  TlsCredentials credentials(Role role, const std::string& name, int64_t from = -kHour,
                             int64_t until = kHour) const {
    return credentials({name_, role, name}, from, until);
  }
  TlsCredentials credentials(const MemberName& member, int64_t from = -kHour,
                             int64_t until = kHour) const {
    TlsCredentials made;
    made.authority = authority_.certificate;
    made.key = make_key();
    made.certificate =
        issue_certificate(authority_, make_request(made.key), member, from_now(from, until));
    return made;
  }
  TlsCredentials server() const { return credentials(Role::kServer, kServerName); }

  static constexpr int64_t kHour = 3'600'000'000;

 private:
  static Validity from_now(int64_t from, int64_t until) {
    const int64_t now = system_clock().utc_us();
    return {now + from, now + until};
  }

  const std::string name_;
  const CertificateAndKey authority_;
};

}  // namespace sublet::testing

#endif  // SUBLET_TRANSPORT_TESTING_TLS_POOL_H_
