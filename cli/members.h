// Memberships as the command keeps them. Main thread.
#ifndef SUBLET_CLI_MEMBERS_H_
#define SUBLET_CLI_MEMBERS_H_

#include <string>

namespace sublet::cli {

// How a server that is reached over TLS is written: tls://HOST:PORT.
inline constexpr char kTlsScheme[] = "tls://";

// Where the membership at such a server lies: one file for each.
std::string membership_path(const std::string& server);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_MEMBERS_H_
