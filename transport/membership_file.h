// A membership on the member's own disk: one file, readable by its owner only,
// with the server's address, the private key, the certificate and the
// authority's certificate. One writer at a time.
#ifndef SUBLET_TRANSPORT_MEMBERSHIP_FILE_H_
#define SUBLET_TRANSPORT_MEMBERSHIP_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.h"
#include "transport/tls/dial.h"

namespace sublet {

// Nothing when there is none. Throws FileError; TlsError: damaged, or what is in it does not fit
// together.
std::optional<Membership> read_membership(const Files& files, const std::string& path);
// Appears whole or not at all, mode 0600. Throws FileError.
void write_membership(Files& files, const std::string& path, const Membership& membership);

// Exchanges a token for a membership and writes it. The key is on disk before it
// is shown, in a file beside, so that a join whose answer was lost is simply made
// again. What was there before is replaced. Throws FileError, DialError, TlsError.
Membership join_and_keep(Files& files, const std::string& path, const JoinToken& token,
                         int timeout_ms);

// Whether two thirds of the certificate's time are over. Throws TlsError.
bool due_for_renewal(const Membership& membership, int64_t utc_us);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_MEMBERSHIP_FILE_H_
