// The servant of Membership: invitations, members, renewals.
#include "membership.hh"

#include "server/members/members.h"
#include "server/servants/guard_call.h"
#include "server/servants/servants.h"
#include "server/servants/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

Role role_of(CORBA::ULong number) {
  const auto role = role_from(static_cast<uint32_t>(number));
  if (role) return *role;
  throw Refusal(Refusal::Kind::kInvalid, "member.role", "an unknown role", "Use one of ROLE_....",
                "role");
}

class MembershipServant : public POA_Sublet::v1::Membership {
 public:
  explicit MembershipServant(const Services& s) : s_(s) {}

  v1::InvitationAnswer* invite(const v1::RequestId& request, const char* name, CORBA::ULong role,
                               v1::Duration valid) override {
    return guard_call([&] {
      const Caller caller = administrator("inviting members");
      const Invited invited =
          s_.members.invite(caller, from_octets(request), name, role_of(role), valid);
      v1::InvitationAnswer_var out = new v1::InvitationAnswer;
      out->token = CORBA::string_dup(invited.token.c_str());
      out->expires = invited.expires;
      return out._retn();
    });
  }

  void revoke(const v1::RequestId& request, const char* name) override {
    guard_call([&] {
      const Caller caller = administrator("revoking a membership");
      s_.members.revoke(caller, from_octets(request), name);
    });
  }

  v1::MemberPage* list(const v1::Bytes& cursor, CORBA::ULong limit) override {
    return guard_call([&] {
      administrator("listing members");
      const std::string at = from_octets(cursor);
      if (at.size() > 19 || at.find_first_not_of("0123456789") != std::string::npos)
        throw Refusal(Refusal::Kind::kInvalid, "cursor.bad", "this cursor is not from this server",
                      "Start with an empty cursor.", "cursor");
      if (limit < 1 || limit > 1000)
        throw Refusal(Refusal::Kind::kInvalid, "limit.range", "a limit outside 1 to 1,000",
                      "Choose a limit in that range.", "limit");
      const auto rows = s_.members.list(at.empty() ? 0 : std::stoull(at), limit);
      v1::MemberPage_var out = new v1::MemberPage;
      out->members.length(rows.size());
      for (size_t i = 0; i < rows.size(); ++i) fill(rows[i], out->members[i]);
      if (rows.size() == limit) to_octets(std::to_string(rows.back().number), out->next);
      return out._retn();
    });
  }

  char* renew(const v1::RequestId& request, const char* certificate_request) override {
    return guard_call([&] {
      const std::string certificate =
          s_.members.renew(s_.access.caller(), from_octets(request), certificate_request);
      return CORBA::string_dup(certificate.c_str());
    });
  }

 private:
  Caller administrator(const char* what) {
    const Caller caller = s_.access.caller();
    s_.access.require_administrator(caller, what);
    return caller;
  }

  static void fill(const MemberRow& row, v1::MemberInfo& out) {
    out.name = CORBA::string_dup(row.name.c_str());
    out.role = static_cast<CORBA::ULong>(row.role);
    out.joined = row.joined;
    out.expires = row.expires;
    out.revoked = row.revoked;
    out.invited_by = CORBA::string_dup(to_utf8(row.invited_by).c_str());
  }

  const Services s_;
};

}  // namespace

PortableServer::Servant make_membership(const Services& services) {
  return new MembershipServant(services);
}

}  // namespace sublet::server
