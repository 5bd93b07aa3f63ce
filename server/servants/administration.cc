// The servant of Administration. No operation of it is served yet.
#include "administration.hh"

#include "server/servants/guard_call.h"
#include "server/servants/servants.h"
#include "server/servants/served.h"

namespace sublet::server {
namespace {

namespace v1 = Sublet::v1;

class AdministrationServant : public POA_Sublet::v1::Administration {
 public:
  explicit AdministrationServant(const Services& s) : s_(s) {}

  void drain(const v1::RequestId&, v1::MachineNumber) override { refuse("Administration.drain"); }
  void resume(const v1::RequestId&, v1::MachineNumber) override { refuse("Administration.resume"); }
  CORBA::ULong evict(const v1::RequestId&, v1::MachineNumber) override {
    refuse("Administration.evict");
  }
  void set_shares(const v1::RequestId&, const v1::UserShares&) override {
    refuse("Administration.set_shares");
  }
  void set_quota(const v1::RequestId&, const v1::Quota&) override {
    refuse("Administration.set_quota");
  }
  v1::QuotaPage* quotas(const v1::Bytes&, CORBA::ULong) override {
    refuse("Administration.quotas");
  }
  void reclaim(const v1::RequestId&, v1::MachineNumber, v1::Duration) override {
    refuse("Administration.reclaim");
  }
  void lend(const v1::RequestId&, v1::MachineNumber) override { refuse("Administration.lend"); }
  v1::EvictionPage* evictions(v1::MachineNumber, const v1::Bytes&, CORBA::ULong) override {
    refuse("Administration.evictions");
  }

 private:
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
