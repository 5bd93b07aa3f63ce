// What administrators change in a running pool, without the ORB: machines that are drained or
// cleared, users' shares and quotas, policies. All of it is durable.
//
// Threads: any.
#ifndef SUBLET_SERVER_ADMINISTRATION_H_
#define SUBLET_SERVER_ADMINISTRATION_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/access.h"
#include "server/commit/pipeline.h"
#include "server/policy_settings.h"
#include "server/spool/service.h"
#include "server/store/archive/archive.h"

namespace sublet::server {

struct SharesLine {
  std::string user;
  double shares = 1;
  bool by_administrator = false;  // else by the settings
};

struct QuotaLine {
  std::string user;
  uint64_t bytes = 0;
  SpoolUse used;
  bool by_administrator = false;  // else by the settings
};

// What the settings say of a user of whom no administrator has said anything.
struct SettledShares {
  std::map<std::string, double> of_users;
  double default_shares = 1;
};

class AdministrationService {
 public:
  // `policies`: what the settings say.
  AdministrationService(Pipeline& pipeline, Archive& archive, Access& access, SettledShares shares,
                        scheduling::PolicyChoice policies, SpoolLimits limits);

  // request: the caller's 16 octets. All of these throw Refusal: kNotPermitted unless the
  // caller is an administrator, kNotFound "machine.unknown", kInvalid "field.invalid".

  // False: it was so already.
  bool drain(const Caller& caller, const std::string& request, MachineId machine, bool drained);
  // The number of attempts told to leave.
  uint64_t evict(const Caller& caller, const std::string& request, MachineId machine);
  // std::nullopt: as the settings say.
  void set_shares(const Caller& caller, const std::string& request, const std::string& user,
                  std::optional<double> shares);
  void set_quota(const Caller& caller, const std::string& request, const std::string& user,
                 std::optional<uint64_t> bytes);

  // The policies in force with these words in place of their own; std::nullopt: as the settings
  // say. Throws Refusal as changed() does, too.
  void set_policies(const Caller& caller, const std::string& request,
                    const std::optional<PolicyWords>& words);
  scheduling::PolicyRecord policies();

  // At most `limit` users after `after`, in order of name; who may see whom:
  // idl/administration.idl.
  std::vector<SharesLine> shares(const std::string& after, uint32_t limit);
  std::vector<QuotaLine> quotas(const Caller& caller, const std::string& after, uint32_t limit);

 private:
  struct Act {
    std::string what;        // for logs and refusals: "draining machine 3"
    std::string value = {};  // what follows it in logs: ": 50 GiB"
    std::string exact = {};  // its arguments, as far as `value` rounds them
  };
  // The answer of `work`, or the first one if this request is a repeat.
  std::string change(const Caller& caller, const std::string& request, const Act& act,
                     const std::function<std::string(Turn&)>& work);

  Pipeline& pipeline_;
  Archive& archive_;
  Access& access_;
  const SettledShares shares_;
  const scheduling::PolicyChoice policies_;
  const SpoolLimits limits_;
};

}  // namespace sublet::server

#endif  // SUBLET_SERVER_ADMINISTRATION_H_
