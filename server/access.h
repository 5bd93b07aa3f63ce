// Identifies callers and checks their permissions; nothing else does.
//
// Threads: any.
#ifndef SUBLET_SERVER_ACCESS_H_
#define SUBLET_SERVER_ACCESS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "transport/peer.h"

namespace sublet::server {

struct Caller {
  // A local caller's uid; for a remote member Peer::id, which is above all uids.
  uint64_t uid = 0;
  // The name of the uid, or "uid1234" if it has none; the name in a user's
  // certificate; for a machine, a text that cannot be a user's name.
  std::string user;
  bool administrator = false;
  bool named = true;                        // the uid has a password entry
  std::optional<Role> role = std::nullopt;  // of a remote member
  std::string machine = {};                 // the name in a machine's certificate
  int64_t joined = 0;                       // of a remote member: identifies its join
};

class Access {
 public:
  // The name of a user id; nullopt if it has none. Throws OsError if the user database does
  // not answer.
  using UserNames = std::function<std::optional<std::string>(uint32_t uid)>;
  static std::optional<std::string> look_up(uint32_t uid);
  // How long an answer is used: users are renamed rarely, but added at any time.
  static constexpr int64_t kKeepNameMs = 600'000;
  static constexpr int64_t kKeepNamelessMs = 10'000;

  // administrators: user names in addition to root and the server's own user.
  explicit Access(std::vector<std::string> administrators, const Clock& clock = system_clock(),
                  UserNames names = look_up);

  // The caller of the current upcall, identified by the kernel or by its certificate.
  // Throws Refusal kNotPermitted outside an upcall, or if the transport cannot
  // identify the peer.
  Caller caller();
  // The same, but refuses machines' certificates: machines cannot submit or control
  // jobs.
  Caller submitter();
  // The same, but refuses all certificates except machines'.
  Caller workstation();
  Caller caller_with_uid(uint32_t uid);
  static Caller caller_with_certificate(const Peer& peer);

  // Throw Refusal kNotPermitted.
  void require_administrator(const Caller& caller, const std::string& what) const;
  // For removing, holding, fetching and inspecting: only the submitter or an
  // administrator may.
  void require_owner(const Caller& caller, const std::string& user,
                     const std::string& subject) const;
  bool owns(const Caller& caller, const std::string& user) const;

 private:
  struct Name {
    std::string text;  // empty: the uid has none
    int64_t since_ns = 0;
  };

  // Empty if the uid has no password entry. While the user database does not answer, the
  // last answer is used; throws Refusal kUnavailable "caller.names" if there is none.
  std::string name_of(uint32_t uid);
  std::optional<Name> known_name(uint32_t uid);
  bool is_fresh(const Name& name) const;

  const std::vector<std::string> administrators_;
  const Clock& clock_;
  const UserNames look_up_;
  std::mutex mutex_;
  std::map<uint32_t, Name> names_;  // bounded: emptied at 10,000
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_ACCESS_H_
