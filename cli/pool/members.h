// The command's memberships of pools. Main thread.
#ifndef SUBLET_CLI_POOL_MEMBERS_H_
#define SUBLET_CLI_POOL_MEMBERS_H_

#include <optional>
#include <string>

#include "transport/tls/dial.h"

namespace sublet::cli {

// The prefix of the address of a server over TLS: tls://HOST:PORT.
inline constexpr char kTlsScheme[] = "tls://";

// The path of the membership for such a server: one file for each server.
std::string membership_path(const std::string& server);

// The membership for a server at tls://HOST:PORT; nullopt for a Unix socket. Throws
// PoolError: invalid address, no membership there, or the file is damaged.
std::optional<Membership> membership_at(const std::string& server);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_POOL_MEMBERS_H_
