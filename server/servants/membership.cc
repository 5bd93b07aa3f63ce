// The servant of Membership: invitations, members, renewals.
#include "membership.hh"

#include "server/members/members.h"
#include "server/servants/guard_call.h"
#include "server/servants/page.h"
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
      v1::InvitationAnswer_var out = new v1::InvitationAnswer();
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
      const auto rows = s_.members.list(number_from(cursor), limit);
      const auto after = [&](size_t last) { return std::to_string(rows[last].number); };
      v1::MemberPage_var out = new v1::MemberPage();
      out->members.length(rows.size());
      for (size_t i = 0; i < rows.size(); ++i) fill(rows[i], out->members[i]);
      const std::string next = rows.size() == limit ? after(limit - 1) : "";
      to_octets(end_page(out->members, next, after), out->next);
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
    out = v1::MemberInfo{};
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
