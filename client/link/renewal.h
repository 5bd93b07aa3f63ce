// Renews the certificate of a workstation with a remote server. A renewal
// that was begun is finished as it was begun: with one request id and one text,
// however often the answer is lost, and without asking again while the disk is
// full. The server takes anything else for another renewal, and remembers only so
// many certificates of a member. One thread.
#ifndef SUBLET_CLIENT_LINK_RENEWAL_H_
#define SUBLET_CLIENT_LINK_RENEWAL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/link/server_calls.h"
#include "transport/tls/dial.h"

namespace sublet::client {

class Renewal {
 public:
  struct Hooks {
    // Asks the server for a certificate; throws when there is no answer.
    std::function<std::string(const RequestId& id, const std::string& request)> ask;
    // Makes later connections with these. Throws TlsError: unusable.
    std::function<void(const TlsCredentials&)> use;
    // On disk when it returns. Throws FileError.
    std::function<void(const Membership&)> keep;
  };
  Renewal(Membership membership, Hooks hooks);

  // If two thirds of the certificate's time are over, tries once, at most once a
  // minute: true when the new one is in use and on disk. boot_ns: CLOCK_BOOTTIME.
  // Throws what the hooks throw; TlsError.
  bool step(int64_t boot_ns, int64_t utc_us);

 private:
  struct Begun {
    RequestId id;
    std::string request;
    std::string certificate;  // "": no answer yet
  };

  Membership membership_;
  Hooks hooks_;
  std::optional<Begun> begun_;
  int64_t next_try_ns_ = 0;
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_RENEWAL_H_
