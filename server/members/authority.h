// The pool's certificate authority on disk: the folder `authority` in the server's
// state folder, created once by `sublet-server init`. Main thread only.
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
  TlsCredentials server;  // with the server's own certificate
  std::string pool;
  Digest fingerprint{};
};

// Creates the authority and the server's certificate, both valid for valid_us.
// Never replaces an existing authority. True if it was created now. Throws
// FileError, or TlsError: the pool's name is invalid, or there is an authority of
// another pool.
bool make_authority_files(const std::string& state_folder, const std::string& pool,
                          int64_t valid_us);

// std::nullopt if there is none. Throws FileError or TlsError if files are missing or
// do not match.
std::optional<Authority> read_authority(const std::string& state_folder);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MEMBERS_AUTHORITY_H_
