// The pool's authority on disk: a folder `authority` in the server's state
// folder, made once by `sublet-server init`. Main thread.
#ifndef SUBLET_SERVER_MEMBERS_AUTHORITY_H_
#define SUBLET_SERVER_MEMBERS_AUTHORITY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "transport/tls/authority.h"
#include "transport/tls/session.h"

namespace sublet::server {

struct Authority {
  CertificateAndKey own;
  TlsCredentials server;  // of the server's own certificate
  std::string pool;
  Digest fingerprint{};
};

// Makes the authority and the server's certificate, both good for valid_us.
// What is there already is never replaced. True if it was made now. Throws
// FileError, TlsError: no name to make it for, or another pool's is there.
bool make_authority_files(const std::string& state_folder, const std::string& pool,
                          int64_t valid_us);

// Nothing when there is none. Throws FileError, TlsError: half of it is there, or
// it does not fit together.
std::optional<Authority> read_authority(const std::string& state_folder);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MEMBERS_AUTHORITY_H_
