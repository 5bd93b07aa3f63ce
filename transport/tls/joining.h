// What a newcomer and the server say to each other inside TLS, outside the ORB:
// fixed small messages (docs/membership.md has them byte by byte). Pure
// functions.
#ifndef SUBLET_TRANSPORT_TLS_JOINING_H_
#define SUBLET_TRANSPORT_TLS_JOINING_H_

#include <cstddef>
#include <optional>
#include <string>

#include "transport/membership.h"

namespace sublet {

// The server's first word to a member: welcome, or why not.
inline constexpr size_t kGreeting = 5;
std::string to_greeting(Exclusion why);
// Nothing: not a greeting of ours. `bytes` has kGreeting octets.
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

// How many octets the message has that begins so; 0: more must come before it
// can be told. Nothing: it is malformed, and reading on makes no sense.
std::optional<size_t> size_of_request(const std::string& begun);
std::optional<size_t> size_of_answer(const std::string& begun);
// Of a whole message.
JoinRequest request_from_bytes(const std::string& bytes);
JoinAnswer answer_from_bytes(const std::string& bytes);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_TLS_JOINING_H_
