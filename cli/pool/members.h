// Memberships as the command keeps them. Main thread.
#ifndef SUBLET_CLI_POOL_MEMBERS_H_
#define SUBLET_CLI_POOL_MEMBERS_H_

#include <optional>
#include <string>

#include "transport/tls/dial.h"

namespace sublet::cli {

// How a server that is reached over TLS is written: tls://HOST:PORT.
inline constexpr char kTlsScheme[] = "tls://";

// Where the membership at such a server lies: one file for each.
std::string membership_path(const std::string& server);

// The membership for a server at tls://HOST:PORT; nothing for a Unix socket. Throws
// PoolError: no address, no member there, or the file is damaged.
std::optional<Membership> membership_at(const std::string& server);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_POOL_MEMBERS_H_
