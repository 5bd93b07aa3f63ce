// The messages between a newcomer and the server inside TLS, without the ORB: small
// and of fixed form (docs/membership.md defines them byte by byte). Pure functions.
#ifndef SUBLET_TRANSPORT_TLS_JOINING_H_
#define SUBLET_TRANSPORT_TLS_JOINING_H_

#include <cstddef>
#include <optional>
#include <string>

#include "transport/membership.h"

namespace sublet {

// The server's first message to a member: accepted, or the reason why not.
inline constexpr size_t kGreeting = 5;
std::string to_greeting(Exclusion why);
// None: not a valid greeting. A valid one has kGreeting octets.
std::optional<Exclusion> from_greeting(const std::string& bytes);

struct JoinRequest {
  std::string id;       // of the token
  std::string secret;   // of the token
  std::string request;  // for a certificate, PEM
};
struct JoinAnswer {
  Exclusion excluded = Exclusion::kNone;
  std::string certificate;  // PEM, if the newcomer was admitted
};

inline constexpr size_t kMostPemSent = 4096;

std::string to_bytes(const JoinRequest& request);
std::string to_bytes(const JoinAnswer& answer);

// The total size in octets of the message that begins with `begun`; 0: not known yet.
// None: it is malformed.
std::optional<size_t> size_of_request(const std::string& begun);
std::optional<size_t> size_of_answer(const std::string& begun);
// `bytes` is a complete message.
JoinRequest request_from_bytes(const std::string& bytes);
JoinAnswer answer_from_bytes(const std::string& bytes);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_JOINING_H_
