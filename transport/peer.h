// The identity of the other end of a connection, from the kernel or its certificate.
#ifndef SUBLET_TRANSPORT_PEER_H_
#define SUBLET_TRANSPORT_PEER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "transport/membership.h"

namespace sublet {

struct Peer {
  // Identifies the caller: a local process's uid, or kFirstMember plus the number
  // that the server assigned to a remote member. Never reused.
  uint64_t id = 0;
  std::optional<MemberName> member;  // remote, by its certificate
  int64_t joined = 0;                // Admission::joined

  static constexpr uint64_t kFirstMember = uint64_t{1} << 32;

  static Peer local(uint32_t uid) { return {uid, std::nullopt}; }
  std::optional<uint32_t> uid() const {
    return member ? std::nullopt : std::optional(static_cast<uint32_t>(id));
  }
  // "uid 1000", "machine curly".
  std::string text() const {
    if (!member) return "uid " + std::to_string(id);
    return std::string(to_text(member->role)) + " " + member->name;
  }
};

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_PEER_H_
