// Recognizing repeated requests: the key under which an answer is stored, and the
// digest that detects the same id with other arguments.
#ifndef SUBLET_SERVER_REQUEST_KEY_H_
#define SUBLET_SERVER_REQUEST_KEY_H_

#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/text.h"
#include "server/refusal.h"

namespace sublet::server {

// Throws Refusal kInvalid unless the id has 16 octets.
inline std::string request_key(uint64_t uid, std::string_view request) {
  if (request.size() != 16)
    throw Refusal(Refusal::Kind::kInvalid, "request.bad", "a request id has 16 octets",
                  "Make one with 16 random octets.", "request");
  return std::to_string(uid) + "." + hex_encode(request);
}

inline std::string arguments_digest(std::string_view operation, std::string_view arguments) {
  Hasher hash;
  hash.update(operation);
  hash.update(std::string_view("\0", 1));
  hash.update(arguments);
  return hex(hash.finish());
}

}  // namespace sublet::server

#endif  // SUBLET_SERVER_REQUEST_KEY_H_
