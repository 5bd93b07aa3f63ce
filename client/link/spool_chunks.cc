#include "client/link/spool_chunks.h"

#include "base/log.h"

namespace sublet::client {
namespace {

constexpr size_t kMaxMessage = idl::MESSAGE_LIMIT;
constexpr int kCallTimeoutMs = 5000;

}  // namespace

OrbSettings orb_settings(const ContentDoor& door) {
  OrbSettings settings;
  settings.max_message = kMaxMessage;
  settings.client_call_timeout_ms = kCallTimeoutMs;
  settings.server_uid = door.uid;
  settings.membership = door.membership;
  settings.log = [](std::string_view line) { log(Severity::warning) << line; };
  return settings;
}

std::string get_chunk(idl::Spool_ptr spool, const idl::FilePlace& place, uint64_t offset,
                      uint32_t count) {
  idl::Bytes_var bytes = spool->get(place, offset, count);
  return {reinterpret_cast<const char*>(bytes->get_buffer()), bytes->length()};
}

uint64_t put_chunk(idl::Spool_ptr spool, uint64_t upload, uint64_t offset, const char* bytes,
                   size_t count) {
  idl::Bytes chunk;
  to_octets(bytes, count, chunk);
  return spool->put(upload, offset, chunk);
}

}  // namespace sublet::client
