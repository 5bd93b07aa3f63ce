#include "server/access.h"

#include <errno.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "base/os_error.h"
#include "server/refusal.h"
#include "transport/orb.h"

namespace sublet::server {

namespace {
constexpr size_t kLargestEntry = 1 << 20;
}

Access::Access(std::vector<std::string> administrators, const Clock& clock, UserNames names)
    : administrators_(std::move(administrators)), clock_(clock), look_up_(std::move(names)) {}

Caller Access::caller() {
  const auto peer = calling_peer();
  if (!peer)
    throw Refusal(Refusal::Kind::kNotPermitted, "caller.unknown",
                  "the kernel does not identify the caller", "Call over the server's Unix socket.",
                  "caller");
  return peer->member ? caller_with_certificate(*peer)
                      : caller_with_uid(static_cast<uint32_t>(peer->id));
}

Caller Access::caller_with_certificate(const Peer& peer) {
  Caller caller;
  caller.uid = peer.id;
  caller.joined = peer.joined;
  caller.role = peer.member->role;
  caller.user = peer.member->name;
  if (caller.role == Role::kMachine) {
    caller.machine = peer.member->name;
    caller.user = peer.text();  // contains a space, so it is no user's name
  }
  caller.administrator = caller.role == Role::kAdministrator;
  return caller;
}

Caller Access::submitter() {
  Caller who = caller();
  if (who.role != Role::kMachine) return who;
  throw Refusal(Refusal::Kind::kNotPermitted, code_of(Exclusion::kWrongRole),
                "this is the certificate of the " + who.user + ", and machines cannot submit jobs",
                "Join as a user: sublet admin invite NAME --user.", who.user);
}

Caller Access::workstation() {
  Caller who = caller();
  if (!who.role || who.role == Role::kMachine) return who;
  throw Refusal(Refusal::Kind::kNotPermitted, code_of(Exclusion::kWrongRole),
                "this is the certificate of the user " + who.user + ", which cannot add a machine",
                "Join as a machine: sublet admin invite NAME.", who.user);
}

Caller Access::caller_with_uid(uint32_t uid) {
  Caller caller;
  caller.uid = uid;
  caller.user = name_of(uid);
  caller.named = !caller.user.empty();
  if (!caller.named) caller.user = "uid" + std::to_string(uid);
  caller.administrator = uid == 0 || uid == geteuid() ||
                         std::find(administrators_.begin(), administrators_.end(), caller.user) !=
                             administrators_.end();
  return caller;
}

std::optional<std::string> Access::look_up(uint32_t uid) {
  std::vector<char> buffer(16384);
  passwd entry;
  passwd* found = nullptr;
  int code;
  while ((code = getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < kLargestEntry)
    buffer.resize(2 * buffer.size());
  if (found) return found->pw_name;
  // All of these may mean that there is no such entry (getpwuid(3)).
  const bool none = code == 0 || code == ENOENT || code == ESRCH || code == EBADF || code == EPERM;
  if (!none) throw OsError(code, "look up", "user id " + std::to_string(uid));
  return std::nullopt;
}

std::optional<Access::Name> Access::known_name(uint32_t uid) {
  std::lock_guard lock(mutex_);
  const auto it = names_.find(uid);
  return it == names_.end() ? std::nullopt : std::optional(it->second);
}

bool Access::is_fresh(const Name& name) const {
  const int64_t keep_ms = name.text.empty() ? kKeepNamelessMs : kKeepNameMs;
  return clock_.boot_ns() - name.since_ns < keep_ms * 1'000'000;
}

std::string Access::name_of(uint32_t uid) {
  const std::optional<Name> known = known_name(uid);
  if (known && is_fresh(*known)) return known->text;
  Name name{"", clock_.boot_ns()};
  try {
    name.text = look_up_(uid).value_or("");
  } catch (const OsError& error) {
    if (known) return known->text;
    throw Refusal(Refusal::Kind::kUnavailable, "caller.names",
                  std::string("the server cannot find out who you are: ") + error.what(),
                  "Try again; if it lasts, tell the administrator.", "uid " + std::to_string(uid));
  }
  std::lock_guard lock(mutex_);
  if (names_.size() >= 10'000) names_.clear();
  names_[uid] = name;
  return name.text;
}

void Access::require_administrator(const Caller& caller, const std::string& what) const {
  if (caller.administrator) return;
  throw Refusal(Refusal::Kind::kNotPermitted, "admin.only",
                what + " is for administrators, and " + caller.user + " is not one",
                "Ask an administrator of the pool.", caller.user);
}

bool Access::owns(const Caller& caller, const std::string& user) const {
  return caller.administrator || caller.user == user;
}

void Access::require_owner(const Caller& caller, const std::string& user,
                           const std::string& subject) const {
  if (owns(caller, user)) return;
  throw Refusal(Refusal::Kind::kNotPermitted, "job.not_yours",
                subject + " belongs to " + user + ", and you are " + caller.user,
                "Only the submitter or an administrator may do this.", subject);
}

}  // namespace sublet::server
