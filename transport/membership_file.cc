#include "transport/membership_file.h"

#include <string_view>

namespace sublet {
namespace {

constexpr uint64_t kMostBytes = 32768;
constexpr std::string_view kFirst = "sublet-membership 1 ";
constexpr std::string_view kEnd = "-----END ";

TlsError damaged(const std::string& path) {
  return TlsError(path + " is damaged: join again with a new token");
}

// Removes the PEM text at the head of *rest and returns it.
std::string next_pem(std::string_view* rest, const std::string& path) {
  const size_t end = rest->find(kEnd);
  const size_t line = end == std::string_view::npos ? end : rest->find('\n', end);
  if (line == std::string_view::npos) throw damaged(path);
  const std::string pem(rest->substr(0, line + 1));
  rest->remove_prefix(line + 1);
  return pem;
}

// The key for this token: that of an earlier attempt to join with it, or a new one.
std::string key_for(Files& files, const std::string& path, const JoinToken& token) {
  const std::string head = to_text(token) + "\n";
  if (files.exists(path)) {
    const std::string text = files.read_file(path, kMostBytes);
    if (text.starts_with(head)) return text.substr(head.size());
  }
  const std::string key = make_key();
  files.write_atomic(path, head + key, 0600);
  return key;
}

}  // namespace

std::optional<Membership> read_membership(const Files& files, const std::string& path) {
  if (!files.exists(path)) return std::nullopt;
  const std::string text = files.read_file(path, kMostBytes);
  std::string_view rest = text;
  const size_t line = rest.find('\n');
  const auto server = rest.starts_with(kFirst) && line != std::string_view::npos
                          ? host_port_from(rest.substr(kFirst.size(), line - kFirst.size()))
                          : std::nullopt;
  if (!server) throw damaged(path);
  rest.remove_prefix(line + 1);
  Membership membership;
  membership.server = *server;
  membership.credentials.key = next_pem(&rest, path);
  membership.credentials.certificate = next_pem(&rest, path);
  membership.credentials.authority = next_pem(&rest, path);
  try {
    TlsContext::of_member(membership.credentials);
  } catch (const TlsError&) {  // for example a key that does not match the certificate
    throw damaged(path);
  }
  return membership;
}

void write_membership(Files& files, const std::string& path, const Membership& membership) {
  files.write_atomic(path,
                     std::string(kFirst) + to_text(membership.server) + "\n" +
                         membership.credentials.key + membership.credentials.certificate +
                         membership.credentials.authority,
                     0600);
}

Membership join_and_keep(Files& files, const std::string& path, const JoinToken& token,
                         int timeout_ms) {
  const std::string joining = path + ".joining";
  const Membership made = join_pool(token, key_for(files, joining, token), timeout_ms);
  write_membership(files, path, made);
  files.remove_file(joining);
  return made;
}

bool due_for_renewal(const Membership& membership, int64_t utc_us) {
  const Validity validity = read_certificate(membership.credentials.certificate).validity;
  return utc_us > validity.until - (validity.until - validity.from) / 3;
}

}  // namespace sublet
