// The part of ServerCalls that moves the bytes of files. Also used by the process that moves large
// files (mover/mover.h). Thread-safe; calls block and throw ServerError like those.
#ifndef SUBLET_CLIENT_LINK_CONTENT_CALLS_H_
#define SUBLET_CLIENT_LINK_CONTENT_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "job/file_place.h"
#include "transport/tls/dial.h"

namespace sublet::client {

class ContentCalls {
 public:
  virtual ~ContentCalls() = default;

  // At most kChunkLimit octets from `offset`; "" at the end.
  virtual std::string get(const FilePlace& place, uint64_t offset, uint32_t count) = 0;
  // The offset after these.
  virtual uint64_t put(uint64_t upload, uint64_t offset, const char* bytes, size_t count) = 0;
};

// How another process of this client reaches the server.
struct ContentDoor {
  std::string socket;
  uint32_t uid = 0;                      // of the server's account
  std::optional<Membership> membership;  // of a remote server, instead of both
  std::string session;                   // its key
};

}  // namespace sublet::client

#endif  // SUBLET_CLIENT_LINK_CONTENT_CALLS_H_
