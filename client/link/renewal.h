// Renews the certificate of a workstation with a remote server. Retries use the same
// request id and text, however often the answer is lost, and the server is not asked
// again if only the disk was full: the server would count anything else as another
// renewal, and it remembers only a limited number of certificates per member. One
// thread.
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
    // Asks the server for a certificate; throws if there is no answer.
    std::function<std::string(const RequestId& id, const std::string& request)> ask;
    // Uses these for new connections. Throws TlsError if they are unusable.
    std::function<void(const TlsCredentials&)> use;
    // Writes it to disk, synced. Throws FileError.
    std::function<void(const Membership&)> keep;
  };
  Renewal(Membership membership, Hooks hooks);

  // If two thirds of the certificate's validity have passed, tries to renew it, at
  // most once a minute. True if the new one is in use and on disk. boot_ns:
  // CLOCK_BOOTTIME. Throws what the hooks throw; TlsError.
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
