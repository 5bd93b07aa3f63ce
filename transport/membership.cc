#include "transport/membership.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <vector>

#include "base/text.h"

namespace sublet {
namespace {

constexpr size_t kLongestWord = 64;
constexpr size_t kLongestHost = 253;
constexpr std::string_view kScheme = "sublet://";
constexpr std::string_view kTokenHead = "sublet-join-1/";

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// The parts between the separators.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

struct ExclusionWords {
  const char* code;
  const char* message;
  const char* advice;
};

constexpr ExclusionWords kExclusions[] = {
    {"", "", ""},
    {"certificate.missing", "no certificate was presented", "join the pool first"},
    {"certificate.authority", "the certificate is from another pool's authority",
     "join this pool with a token from its administrator"},
    {"certificate.expired", "the certificate has expired, or a clock is wrong",
     "check the clocks of both machines; if they are right, join again with a new token"},
    {"certificate.not_yet_valid", "the certificate is not valid yet: a clock is wrong",
     "set the clocks of both machines"},
    {"certificate.revoked", "the membership was revoked",
     "ask the pool's administrator for a new token"},
    {"certificate.pool", "the certificate is for a pool of another name",
     "join this pool with a token from its administrator"},
    {"certificate.role", "the certificate is for another role",
     "join with a token for the right role: a machine, a user or an administrator"},
    {"certificate.name", "the certificate is for another name",
     "use this member's own certificate"},
    {"certificate.unknown", "the certificate is not known to the server",
     "join again with a new token"},
    {"certificate.malformed", "the certificate or message is not from Sublet",
     "use the same version on both sides"},
    {"server.crowded", "the server accepts no more connections for now", "try again later"},
    {"token.unknown", "the server does not know this token: it may be another pool's",
     "ask the administrator for a new token"},
    {"token.used", "the token has already been used", "ask the administrator for a new token"},
    {"token.expired", "the token has expired", "ask the administrator for a new token"},
    {"token.revoked", "the token was revoked", "ask the administrator for a new token"},
    {"server.unavailable", "the server cannot do this now", "try again in a moment"},
};

}  // namespace

const char* to_text(Role role) {
  switch (role) {
    case Role::kServer:
      return "server";
    case Role::kMachine:
      return "machine";
    case Role::kUser:
      return "user";
    case Role::kAdministrator:
      return "administrator";
  }
  return "unknown";
}

std::optional<Role> role_from(std::string_view text) {
  for (const Role role : {Role::kServer, Role::kMachine, Role::kUser, Role::kAdministrator})
    if (text == to_text(role)) return role;
  return std::nullopt;
}

std::optional<Role> role_from(uint32_t number) {
  if (number < 1 || number > 4) return std::nullopt;
  return static_cast<Role>(number);
}

bool is_member_word(std::string_view text) {
  return !text.empty() && text.size() <= kLongestWord && is_letter_or_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_';
         });
}

std::string to_uri(const MemberName& member) {
  return std::string(kScheme) + member.pool + "/" + to_text(member.role) + "/" + member.name;
}

std::optional<MemberName> member_from_uri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  const auto parts = split(uri.substr(kScheme.size()), '/');
  if (parts.size() != 3 || !is_member_word(parts[0]) || !is_member_word(parts[2]))
    return std::nullopt;
  const auto role = role_from(parts[1]);
  if (!role) return std::nullopt;
  return MemberName{std::string(parts[0]), *role, std::string(parts[2])};
}

std::string to_text(const HostPort& at) {
  const bool v6 = at.host.find(':') != std::string::npos;
  return (v6 ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

std::optional<HostPort> host_port_from(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const bool clean = std::all_of(host.begin(), host.end(), [&](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_' ||
           (bracketed && (c == ':' || c == '%'));
  });
  if (host.empty() || host.size() > kLongestHost || !clean) return std::nullopt;
  HostPort at{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), at.port);
  if (error != std::errc{} || end != port.data() + port.size() || at.port == 0) return std::nullopt;
  return at;
}

std::string to_text(const JoinToken& token) {
  return std::string(kTokenHead) + to_text(token.role) + "/" + to_text(token.server) + "/" +
         hex(token.authority) + "/" + hex_encode(token.id) + "/" + hex_encode(token.secret);
}

std::optional<JoinToken> join_token_from(std::string_view text) {
  if (!text.starts_with(kTokenHead)) return std::nullopt;
  const auto parts = split(text.substr(kTokenHead.size()), '/');
  if (parts.size() != 5) return std::nullopt;
  const auto role = role_from(parts[0]);
  const auto server = host_port_from(parts[1]);
  const auto authority = hex_decode(parts[2]);
  const auto id = hex_decode(parts[3]);
  const auto secret = hex_decode(parts[4]);
  JoinToken token;
  if (!role || !server || !authority || authority->size() != token.authority.size() || !id ||
      id->size() != kTokenId || !secret || secret->size() != kTokenSecret)
    return std::nullopt;
  token.role = *role;
  token.server = *server;
  std::copy(authority->begin(), authority->end(), token.authority.begin());
  token.id = *id;
  token.secret = *secret;
  return token;
}

const char* code_of(Exclusion why) { return kExclusions[static_cast<size_t>(why)].code; }
std::string message_of(Exclusion why) { return kExclusions[static_cast<size_t>(why)].message; }
const char* advice_of(Exclusion why) { return kExclusions[static_cast<size_t>(why)].advice; }

Exclusion exclusion_from(uint8_t number) {
  return number < std::size(kExclusions) ? static_cast<Exclusion>(number) : Exclusion::kMalformed;
}

}  // namespace sublet
