// Who is calling and whether they may: asked here and nowhere else.
//
// Threads: any.
#ifndef SUBLET_SERVER_ACCESS_H_
#define SUBLET_SERVER_ACCESS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/peer.h"

namespace sublet::server {

struct Caller {
  // A local caller's; a member's elsewhere is Peer::id, above all of those.
  uint64_t uid = 0;
  // The uid's name, or "uid1234" where it has none; the name in a user's
  // certificate; for a machine's, words that are no user's name.
  std::string user;
  bool administrator = false;
  bool named = true;                        // the uid has a password entry
  std::optional<Role> role = std::nullopt;  // of a member elsewhere
  std::string machine = {};                 // the name in a machine's certificate
  int64_t joined = 0;                       // of a member elsewhere: the join that let it in
};

class Access {
 public:
  // administrators: user names besides root and the server's own user.
  explicit Access(std::vector<std::string> administrators);

  // The caller of the present upcall, by the kernel's word or its certificate.
  // Throws Refusal kNotPermitted outside one, or when the transport cannot name
  // the peer.
  Caller caller();
  // The same, and refuses a machine's certificate: those submit and control no
  // jobs.
  Caller submitter();
  // The same, and refuses all certificates but machines'.
  Caller workstation();
  Caller caller_with_uid(uint32_t uid);
  static Caller caller_with_certificate(const Peer& peer);

  // Throw Refusal kNotPermitted.
  void require_administrator(const Caller& caller, const std::string& what) const;
  // Removing, holding, fetching, looking into: the submitter or an administrator.
  void require_owner(const Caller& caller, const std::string& user,
                     const std::string& subject) const;
  bool owns(const Caller& caller, const std::string& user) const;

 private:
  // Empty where it has no password entry.
  std::string name_of(uint32_t uid);

  const std::vector<std::string> administrators_;
  std::mutex mutex_;
  std::map<uint32_t, std::string> names_;  // bounded: emptied at 10,000
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_ACCESS_H_
