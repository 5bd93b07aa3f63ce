// The membership file on the member's own disk, readable by its owner only,
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

// None if the file does not exist. Throws FileError; TlsError: damaged or inconsistent.
std::optional<Membership> read_membership(const Files& files, const std::string& path);
// Written atomically, with mode 0600. Throws FileError.
void write_membership(Files& files, const std::string& path, const Membership& membership);

// Exchanges a token for a membership and writes it, replacing an existing one. The key
// is stored in a separate file before it is used, so that a join whose answer was lost
// can be repeated. Throws FileError, DialError, TlsError.
Membership join_and_keep(Files& files, const std::string& path, const JoinToken& token,
                         int timeout_ms);

// Whether two thirds of the certificate's lifetime have passed. Throws TlsError.
bool due_for_renewal(const Membership& membership, int64_t utc_us);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_MEMBERSHIP_FILE_H_
