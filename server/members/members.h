// The remote members: invitations, certificates and revocations. Kept in memory
// and in the store; the store is changed first.
//
// Threads: any. admit() and list() never wait for a commit; the others do.
#ifndef SUBLET_SERVER_MEMBERS_MEMBERS_H_
#define SUBLET_SERVER_MEMBERS_MEMBERS_H_

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/access.h"
#include "server/commit/pipeline.h"
#include "server/members/authority.h"
#include "server/store/archive/archive.h"
#include "transport/tls/door.h"
#include "transport/tls/joining.h"

namespace sublet::server {

struct MemberSettings {
  // Where members reach the server; unset: it does not listen on the network.
  std::optional<HostPort> address;
  int64_t certificate_us = 0;  // validity of members' certificates
};

struct Invited {
  std::string token;
  Micros expires = 0;
};

class Members {
 public:
  // Loads the members. `pipeline` and `clock` must outlive this object. authority: unset if
  // the server does not listen on the network.
  Members(const MemberSettings& settings, std::optional<Authority> authority, Pipeline& pipeline,
          Archive& archive, const Clock& clock);

  // Checks whether the holder of a valid certificate is a member, and returns its number.
  Admission admit(const MemberName& who, const std::string& serial);
  // Sets the function that closes a member's connections and its machine's session.
  // Must be set before the first join or revoke, which call it on their caller's
  // thread, after their commit, with the number of the member.
  void cut_off_by(std::function<void(uint64_t member)> cut_off) { cut_off_ = std::move(cut_off); }

  // Exchanges a token for a certificate; the token is used up in the same commit. Cuts
  // off the previous member with this name.
  JoinAnswer join(const JoinRequest& request);

  // These throw Refusal.
  Invited invite(const Caller& caller, const std::string& request, const std::string& name,
                 Role role, int64_t valid_ms);
  // Revokes all members and open invitations with this name, and cuts off the members,
  // including ones revoked earlier.
  void revoke(const Caller& caller, const std::string& request, const std::string& name);
  std::string renew(const Caller& caller, const std::string& request,
                    const std::string& certificate_request);
  // In order of number, after `after`.
  std::vector<MemberRow> list(uint64_t after, uint32_t limit);

 private:
  const MemberRow* named(const std::string& name) const;
  std::vector<MemberRow> all_named(const std::string& name) const;
  const MemberRow* of_other_role(const std::string& name, Role role) const;
  JoinAnswer take_in(const JoinRequest& request, std::optional<uint64_t>* replaced);
  Exclusion check_token(const InvitationRow& row, const JoinRequest& request,
                        const std::string& key) const;
  MemberRow member_for(const InvitationRow& row) const;
  void end_all(const std::string& key, const std::string& digest, const std::string& name);
  void certify(const std::string& request, MemberRow* row) const;
  JoinToken token_for(Role role, const std::string& request_key) const;
  std::vector<std::string> old_invitations(Micros now) const;
  const Authority& authority() const;
  void keep(const MemberRow& row);

  const MemberSettings settings_;
  const std::optional<Authority> authority_;
  Pipeline& pipeline_;
  const Clock& clock_;
  std::function<void(uint64_t member)> cut_off_;

  // Serializes changes, and is held during their commit; admit() does not need it.
  // Its holder may read the data below, and must also lock mutex_ to change it.
  std::mutex changing_;
  mutable std::mutex mutex_;
  std::map<uint64_t, MemberRow> members_;
  std::map<std::string, uint64_t> newest_;  // the highest number of each name
  std::map<std::string, InvitationRow> invitations_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_MEMBERS_MEMBERS_H_
