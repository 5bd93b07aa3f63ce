#include "server/members/members.h"

#include <algorithm>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "server/page_limit.h"
#include "server/refusal.h"
#include "server/request_key.h"

namespace sublet::server {
namespace {

constexpr int64_t kShortestMs = 1000;
constexpr int64_t kLongestMs = 30ll * 24 * 3'600'000;
constexpr size_t kMostInvitations = 10'000;
// How long used, expired and revoked tokens are kept, so that a join with one gets an
// exact error.
constexpr Micros kKeepInvitations = 30ll * 24 * 3'600'000'000;
// The clocks of members may be slow by this much.
constexpr int64_t kSlack = 3'600'000'000;
// Certificates of a member, besides its newest, that remain valid until they expire: a
// machine that did not receive the replies to renewals still uses one of these.
constexpr size_t kEarlierCertificates = 8;

Refusal invalid(const char* code, const std::string& message, const std::string& advice,
                const std::string& subject) {
  return Refusal(Refusal::Kind::kInvalid, code, message, advice, subject);
}

void check_name(const std::string& name) {
  if (is_member_word(name)) return;
  throw invalid("member.name", "not a valid member name",
                "Use 1 to 64 letters, digits, '.', '-' and '_', beginning with a letter or digit.",
                "name");
}

bool is_known(const MemberRow& row, const std::string& serial) {
  return serial == row.serial ||
         (" " + row.previous_serials + " ").find(" " + serial + " ") != std::string::npos;
}

// Call before the certificate is replaced.
void keep_serial(MemberRow* row) {
  std::string& serials = row->previous_serials;
  serials = row->serial + (serials.empty() ? "" : " ") + serials;
  size_t end = 0;
  for (size_t n = 0; n < kEarlierCertificates && end != std::string::npos; ++n)
    end = serials.find(' ', end + 1);
  serials.resize(std::min(end, serials.size()));
}

}  // namespace

Members::Members(const MemberSettings& settings, std::optional<Authority> authority,
                 Pipeline& pipeline, Archive& archive, const Clock& clock)
    : settings_(settings), authority_(std::move(authority)), pipeline_(pipeline), clock_(clock) {
  for (const auto& row : archive.members()) keep(row);
  for (auto& row : archive.invitations()) invitations_[row.id] = std::move(row);
}

void Members::keep(const MemberRow& row) {
  members_[row.number] = row;
  uint64_t& newest = newest_[row.name];
  newest = std::max(newest, row.number);
}

const MemberRow* Members::named(const std::string& name) const {
  const auto found = newest_.find(name);
  return found == newest_.end() ? nullptr : &members_.at(found->second);
}

std::vector<MemberRow> Members::all_named(const std::string& name) const {
  std::vector<MemberRow> rows;
  for (const auto& [number, row] : members_)
    if (row.name == name) rows.push_back(row);
  return rows;
}

// A name has one role at a time.
const MemberRow* Members::of_other_role(const std::string& name, Role role) const {
  for (const auto& [number, row] : members_)
    if (row.name == name && row.revoked == 0 && row.role != role) return &row;
  return nullptr;
}

const Authority& Members::authority() const {
  if (authority_ && settings_.address) return *authority_;
  throw Refusal(Refusal::Kind::kConflict, "membership.closed",
                "this server does not listen to a network, so remote members cannot join",
                "Run 'sublet-server init', set server.listen and restart the server.", "server");
}

Admission Members::admit(const MemberName& who, const std::string& serial) {
  std::lock_guard lock(mutex_);
  const MemberRow* row = named(who.name);
  if (row == nullptr) return {Exclusion::kUnknownMember, 0};
  if (row->role != who.role) return {Exclusion::kWrongRole, 0};
  if (row->revoked != 0) return {Exclusion::kRevoked, 0};
  if (!is_known(*row, serial)) return {Exclusion::kUnknownMember, 0};
  return {Exclusion::kNone, row->number, row->joined};
}

Exclusion Members::check_token(const InvitationRow& row, const JoinRequest& request,
                               const std::string& key) const {
  if (!equal_in_constant_time(row.secret_digest, hex(digest_of(request.secret))))
    return Exclusion::kTokenUnknown;
  if (row.revoked != 0) return Exclusion::kTokenRevoked;
  // The same key again: the reply was lost.
  if (!row.used_by.empty() && row.used_by != key) return Exclusion::kTokenUsed;
  if (row.expires <= clock_.utc_us()) return Exclusion::kTokenExpired;
  return Exclusion::kNone;
}

// The row of a joining member: one that lost its certificate keeps its number.
MemberRow Members::member_for(const InvitationRow& invitation) const {
  MemberRow row;
  const MemberRow* before = named(invitation.name);
  if (before != nullptr && before->role == invitation.role)
    row.number = before->number;
  else
    row.number = members_.empty() ? 1 : members_.rbegin()->first + 1;
  row.role = invitation.role;
  row.name = invitation.name;
  row.joined = clock_.utc_us();
  row.invited_by = invitation.invited_by;
  return row;
}

void Members::certify(const std::string& request, MemberRow* row) const {
  const int64_t now = clock_.utc_us();
  // Never beyond the authority's own validity.
  const int64_t last = read_certificate(authority_->own.certificate).validity.until;
  row->expires = std::min(now + settings_.certificate_us, last);
  row->certificate =
      issue_certificate(authority_->own, request, {authority_->pool, row->role, row->name},
                        {now - std::min(kSlack, settings_.certificate_us), row->expires});
  row->serial = read_certificate(row->certificate).serial;
}

JoinAnswer Members::take_in(const JoinRequest& request, std::optional<uint64_t>* replaced) {
  std::lock_guard changing(changing_);
  const std::string key = hex(key_of_request(request.request));
  const auto found = invitations_.find(hex_encode(request.id));
  if (found == invitations_.end()) return {Exclusion::kTokenUnknown, ""};
  InvitationRow invitation = found->second;
  const Exclusion why = check_token(invitation, request, key);
  if (why != Exclusion::kNone) return {why, ""};
  if (!invitation.used_by.empty()) {
    const MemberRow* row = named(invitation.name);
    if (row == nullptr || row->revoked != 0) return {Exclusion::kTokenUsed, ""};
    return {Exclusion::kNone, row->certificate};
  }
  // Another member has joined with this name since the invitation.
  if (of_other_role(invitation.name, invitation.role)) return {Exclusion::kWrongRole, ""};
  MemberRow row = member_for(invitation);
  if (members_.count(row.number)) *replaced = row.number;
  certify(request.request, &row);
  invitation.used_by = key;
  pipeline_.perform([&](Turn& turn) {
    turn.changes().members[row.number] = row;
    turn.changes().invitations[invitation.id] = invitation;
  });
  std::lock_guard lock(mutex_);
  keep(row);
  invitations_[invitation.id] = invitation;
  log(Severity::info) << to_text(row.role) << " " << row.name << " has joined, invited by "
                      << row.invited_by;
  return {Exclusion::kNone, row.certificate};
}

JoinAnswer Members::join(const JoinRequest& request) {
  if (!authority_) return {Exclusion::kUnavailable, ""};
  try {
    std::optional<uint64_t> replaced;
    const JoinAnswer answer = take_in(request, &replaced);
    if (replaced) cut_off_(*replaced);
    return answer;
  } catch (const TlsError&) {
    return {Exclusion::kMalformed, ""};
  } catch (const Refusal& refusal) {
    log(Severity::warning) << "a new member could not be admitted: " << refusal.message;
    return {Exclusion::kUnavailable, ""};
  }
}

// Derived from the request's id and the authority's key, so that a repeated request
// gives the same token although only its hash is stored.
JoinToken Members::token_for(Role role, const std::string& key) const {
  const auto derive = [&](const char* what, size_t size) {
    const Digest digest = digest_of(std::string(what) + '\0' + authority_->own.key + '\0' + key);
    return std::string(reinterpret_cast<const char*>(digest.data()), size);
  };
  return {role, *settings_.address, authority_->fingerprint, derive("token id", kTokenId),
          derive("token secret", kTokenSecret)};
}

std::vector<std::string> Members::old_invitations(Micros now) const {
  std::vector<std::string> old;
  for (const auto& [id, row] : invitations_)
    if (row.expires + kKeepInvitations < now) old.push_back(id);
  return old;
}

Invited Members::invite(const Caller& caller, const std::string& request, const std::string& name,
                        Role role, int64_t valid_ms) {
  const std::string key = request_key(caller.uid, request);
  const std::string digest =
      arguments_digest("invite", name + '\0' + to_text(role) + '\0' + std::to_string(valid_ms));
  check_name(name);
  if (role == Role::kServer)
    throw invalid("member.role", "a pool has one server",
                  "Invite a machine, user or administrator.", name);
  if (valid_ms < kShortestMs || valid_ms > kLongestMs)
    throw invalid("member.valid", "a token is valid for 1 s to 30 d",
                  "Choose a time in that range.", name);
  authority();
  std::lock_guard changing(changing_);
  if (const MemberRow* member = of_other_role(name, role))
    throw Refusal(Refusal::Kind::kConflict, "member.role",
                  name + " is already a member of this pool as " + to_text(member->role),
                  "Choose another name, or revoke that membership first.", name);
  const JoinToken token = token_for(role, key);
  InvitationRow row{hex_encode(token.id), hex(digest_of(token.secret)),      role, name,
                    caller.user,          clock_.utc_us() + valid_ms * 1000, "",   0};
  const auto old = old_invitations(clock_.utc_us());
  if (invitations_.size() - old.size() >= kMostInvitations)
    throw Refusal(Refusal::Kind::kLimitExceeded, "member.invitations",
                  "too many invitations are stored", "Wait until some are 30 days old.", name);
  bool repeated = false;
  pipeline_.perform([&](Turn& turn) {
    if (auto answer = turn.answered(key, digest)) {
      row.expires = std::stoll(*answer);
      repeated = true;
      return;
    }
    turn.changes().invitations[row.id] = row;
    turn.changes().dropped_invitations = old;
    turn.remember(key, digest, std::to_string(row.expires));
  });
  if (!repeated) {
    std::lock_guard lock(mutex_);
    for (const auto& id : old) invitations_.erase(id);
    invitations_[row.id] = row;
    log(Severity::info) << caller.user << " invites " << to_text(role) << " " << name;
  }
  return {to_text(token), row.expires};
}

void Members::revoke(const Caller& caller, const std::string& request, const std::string& name) {
  const std::string key = request_key(caller.uid, request);
  const std::string digest = arguments_digest("revoke", name);
  std::vector<MemberRow> ended;
  {
    std::lock_guard changing(changing_);
    end_all(key, digest, name);
    for (const auto& row : all_named(name))
      if (row.revoked != 0) ended.push_back(row);  // not if it has joined again since
  }
  log(Severity::info) << caller.user << " has revoked " << name;
  for (const auto& row : ended) cut_off_(row.number);
}

// Revokes all members and open invitations with this name, unless this request already did.
void Members::end_all(const std::string& key, const std::string& digest, const std::string& name) {
  std::vector<InvitationRow> open;
  for (const auto& [id, row] : invitations_)
    if (row.name == name && row.revoked == 0 && row.used_by.empty()) open.push_back(row);
  std::vector<MemberRow> members = all_named(name);
  std::erase_if(members, [](const MemberRow& row) { return row.revoked != 0; });
  bool repeated = false;
  pipeline_.perform([&](Turn& turn) {
    repeated = turn.answered(key, digest).has_value();
    if (repeated) return;
    if (members.empty() && open.empty())
      throw Refusal(Refusal::Kind::kNotFound, "member.unknown",
                    "there is no member and no open invitation named " + name,
                    "See 'sublet admin members'.", name);
    for (auto& row : members) {
      row.revoked = turn.now();
      turn.changes().members[row.number] = row;
    }
    for (auto& row : open) {
      row.revoked = turn.now();
      turn.changes().invitations[row.id] = row;
    }
    turn.remember(key, digest, "done");
  });
  if (repeated) return;
  std::lock_guard lock(mutex_);
  for (const auto& row : members) keep(row);
  for (const auto& row : open) invitations_[row.id] = row;
}

std::string Members::renew(const Caller& caller, const std::string& request,
                           const std::string& certificate_request) {
  const std::string key = request_key(caller.uid, request);
  if (caller.uid < Peer::kFirstMember || !authority_)
    throw Refusal(Refusal::Kind::kNotPermitted, "caller.local",
                  "only a remote member has a certificate to renew",
                  "Call over the member's own connection.", "caller");
  std::lock_guard changing(changing_);
  const auto found = members_.find(caller.uid - Peer::kFirstMember);
  if (found == members_.end() || found->second.revoked != 0)
    throw Refusal(Refusal::Kind::kNotPermitted, code_of(Exclusion::kRevoked),
                  message_of(Exclusion::kRevoked), advice_of(Exclusion::kRevoked), caller.user);
  MemberRow row = found->second;
  // This caller is being cut off: another one has joined with its name since.
  if (row.joined != caller.joined)
    throw Refusal(Refusal::Kind::kNotPermitted, code_of(Exclusion::kUnknownMember),
                  message_of(Exclusion::kUnknownMember), advice_of(Exclusion::kUnknownMember),
                  caller.user);
  keep_serial(&row);
  try {
    certify(certificate_request, &row);
  } catch (const TlsError& e) {
    throw invalid("certificate.request", e.what(), "Send a PKCS #10 request with an EC P-256 key.",
                  caller.user);
  }
  const std::string digest = arguments_digest("renew", certificate_request);
  bool repeated = false;
  pipeline_.perform([&](Turn& turn) {
    if (auto answer = turn.answered(key, digest)) {
      row.certificate = *answer;
      repeated = true;
      return;
    }
    turn.changes().members[row.number] = row;
    turn.remember(key, digest, row.certificate);
  });
  if (!repeated) {
    std::lock_guard lock(mutex_);
    keep(row);
  }
  return row.certificate;
}

std::vector<MemberRow> Members::list(uint64_t after, uint32_t limit) {
  check_limit(limit);
  std::lock_guard lock(mutex_);
  std::vector<MemberRow> rows;
  for (auto it = members_.upper_bound(after); it != members_.end() && rows.size() < limit; ++it)
    rows.push_back(it->second);
  return rows;
}

}  // namespace sublet::server
