// The servant of Administration. What owners do from elsewhere is not served yet.
#include "server/administration.h"

#include "administration.hh"
#include "base/text.h"
#include "job/idl/translation.h"
#include "server/servants/guard_call.h"
#include "server/servants/page.h"
#include "server/servants/servants.h"
#include "server/servants/served.h"
#include "server/servants/translate.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

class AdministrationServant : public POA_Sublet::v1::Administration {
 public:
  explicit AdministrationServant(const Services& s) : s_(s) {}

  CORBA::Boolean drain(const v1::RequestId& request, v1::MachineNumber machine) override {
    return drained(request, machine, true);
  }
  CORBA::Boolean resume(const v1::RequestId& request, v1::MachineNumber machine) override {
    return drained(request, machine, false);
  }

  CORBA::ULong evict(const v1::RequestId& request, v1::MachineNumber machine) override {
    return guard_call([&] {
      const uint64_t told =
          s_.administration.evict(s_.access.caller(), from_octets(request), machine);
      return static_cast<CORBA::ULong>(told);
    });
  }

  void set_shares(const v1::RequestId& request, const v1::UserShares& part) override {
    guard_call([&] {
      require_served("UserShares", part.more);
      const auto shares = part.shares == 0 ? std::nullopt : std::optional<double>(part.shares);
      s_.administration.set_shares(s_.access.caller(), from_octets(request), part.user.in(),
                                   shares);
    });
  }

  void set_quota(const v1::RequestId& request, const v1::Quota& bound) override {
    guard_call([&] {
      require_served("Quota", bound.more);
      const auto bytes =
          bound.by_administrator ? std::optional<uint64_t>(bound.bytes) : std::nullopt;
      s_.administration.set_quota(s_.access.caller(), from_octets(request), bound.user.in(), bytes);
    });
  }

  void set_policies(const v1::RequestId& request, const v1::Details& parameters) override {
    guard_call([&] {
      s_.administration.set_policies(s_.access.caller(), from_octets(request),
                                     sublet::from_idl(parameters));
    });
  }

  void give_policies_back(const v1::RequestId& request) override {
    guard_call([&] {
      s_.administration.set_policies(s_.access.caller(), from_octets(request), std::nullopt);
    });
  }

  v1::Policies* policies_in_force() override {
    return guard_call([&] {
      s_.access.submitter();
      const scheduling::PolicyRecord policy = s_.administration.policies();
      v1::Policies_var out = new v1::Policies();
      sublet::to_idl(words_of(policy.choice), out->parameters);
      out->since = policy.since;
      out->by = CORBA::string_dup(to_utf8(policy.by).c_str());
      return out._retn();
    });
  }

  v1::SharesPage* shares(const v1::Bytes& cursor, CORBA::ULong limit) override {
    return guard_call([&] {
      s_.access.submitter();
      const auto lines = s_.administration.shares(from_octets(cursor), limit);
      v1::SharesPage_var out = new v1::SharesPage();
      fill_page(lines, limit, out->shares, out->next);
      return out._retn();
    });
  }

  v1::QuotaPage* quotas(const v1::Bytes& cursor, CORBA::ULong limit) override {
    return guard_call([&] {
      const auto lines =
          s_.administration.quotas(s_.access.submitter(), from_octets(cursor), limit);
      v1::QuotaPage_var out = new v1::QuotaPage();
      fill_page(lines, limit, out->quotas, out->next);
      return out._retn();
    });
  }

  void reclaim(const v1::RequestId&, v1::MachineNumber, v1::Duration) override {
    refuse("Administration.reclaim");
  }
  void lend(const v1::RequestId&, v1::MachineNumber) override { refuse("Administration.lend"); }
  v1::EvictionPage* evictions(v1::MachineNumber, const v1::Bytes&, CORBA::ULong) override {
    refuse("Administration.evictions");
  }

 private:
  CORBA::Boolean drained(const v1::RequestId& request, v1::MachineNumber machine, bool drained) {
    return guard_call([&] {
      return s_.administration.drain(s_.access.caller(), from_octets(request), machine, drained);
    });
  }

  template <typename Line, typename Items>
  static void fill_page(const std::vector<Line>& lines, CORBA::ULong limit, Items& items,
                        v1::Bytes& next) {
    items.length(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) fill(lines[i], items[i]);
    const auto after = [&](size_t last) { return lines[last].user; };
    to_octets(end_page(items, lines.size() == limit ? after(limit - 1) : "", after), next);
  }
  static void fill(const SharesLine& line, v1::UserShares& out) {
    out.user = CORBA::string_dup(to_utf8(line.user).c_str());
    out.shares = line.shares;
    out.by_administrator = line.by_administrator;
  }
  static void fill(const QuotaLine& line, v1::Quota& out) {
    out.user = CORBA::string_dup(to_utf8(line.user).c_str());
    out.bytes = line.bytes;
    out.used = line.used.files;
    out.by_administrator = line.by_administrator;
    add_detail(out.more, "checkpoints", std::to_string(line.used.checkpoints));
  }

  [[noreturn]] void refuse(const char* operation) {
    guard_call([&] {
      s_.access.caller();
      refuse_operation(operation);
    });
    std::abort();  // not reached: guard_call() always throws here
  }

  const Services s_;
};

}  // namespace

PortableServer::Servant make_administration(const Services& services) {
  return new AdministrationServant(services);
}

}  // namespace sublet::server
