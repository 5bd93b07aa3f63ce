// Members of a pool as text: the name in a certificate, the token with which a new
// member joins, and the reasons for refusing a connection. Pure functions; for
// certificates see transport/tls/authority.h.
#ifndef SUBLET_TRANSPORT_MEMBERSHIP_H_
#define SUBLET_TRANSPORT_MEMBERSHIP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace sublet {

// The numbers are stored and sent.
enum class Role : uint32_t { kServer = 1, kMachine = 2, kUser = 3, kAdministrator = 4 };
const char* to_text(Role role);
std::optional<Role> role_from(std::string_view text);
std::optional<Role> role_from(uint32_t number);

struct MemberName {
  std::string pool;
  Role role = Role::kMachine;
  std::string name;
  bool operator==(const MemberName&) const = default;
};

// A pool's or member's name: 1 to 64 letters, digits, '.', '-' and '_', the
// first a letter or digit.
bool is_member_word(std::string_view text);
// "sublet://POOL/ROLE/NAME", the identity in a certificate.
std::string to_uri(const MemberName& member);
std::optional<MemberName> member_from_uri(std::string_view uri);

// "HOST:PORT" or "[IPV6]:PORT".
struct HostPort {
  std::string host;
  uint16_t port = 0;
  bool operator==(const HostPort&) const = default;
};
std::string to_text(const HostPort& at);
// None unless there is a host and a port from 1 to 65535.
std::optional<HostPort> host_port_from(std::string_view text);

// Given by an administrator to a new member: the address of the server, the
// fingerprint of its authority, and a secret valid for one certificate.
struct JoinToken {
  Role role = Role::kMachine;  // informational; the server's record decides
  HostPort server;
  Digest authority{};  // SHA-256 of the authority's certificate
  std::string id;      // 8 octets
  std::string secret;  // 16 octets
  bool operator==(const JoinToken&) const = default;
};
inline constexpr size_t kTokenId = 8;
inline constexpr size_t kTokenSecret = 16;
std::string to_text(const JoinToken& token);
std::optional<JoinToken> join_token_from(std::string_view text);

// Why one side refuses the other. The numbers are sent.
enum class Exclusion : uint8_t {
  kNone = 0,
  kNoCertificate = 1,
  kWrongAuthority = 2,
  kExpired = 3,
  kNotYetValid = 4,
  kRevoked = 5,
  kWrongPool = 6,
  kWrongRole = 7,
  kWrongName = 8,
  kUnknownMember = 9,  // of the right authority, but not known to the server
  kMalformed = 10,     // a certificate without a member's name, or an invalid message
  kTooMany = 11,
  kTokenUnknown = 12,
  kTokenUsed = 13,
  kTokenExpired = 14,
  kTokenRevoked = 15,
  kUnavailable = 16,
};
// "certificate.expired", "token.used" ...: docs/errors.md.
const char* code_of(Exclusion why);
// A message for the excluded side, and what to do about it.
std::string message_of(Exclusion why);
const char* advice_of(Exclusion why);
// Unknown numbers become kMalformed.
Exclusion exclusion_from(uint8_t number);

}  // namespace sublet

#endif  // SUBLET_TRANSPORT_MEMBERSHIP_H_
