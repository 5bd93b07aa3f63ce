#include "server/administration.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "scheduling/queries/text.h"
#include "server/page_limit.h"
#include "server/refusal.h"
#include "server/request_key.h"

namespace sublet::server {
namespace {

constexpr size_t kLongestName = 255;
// As in the settings.
constexpr double kFewestShares = 1e-6;
constexpr double kMostShares = 1e6;
constexpr uint64_t kLargestQuota = 1ull << 50;

Refusal invalid(const std::string& message, const std::string& advice, const std::string& subject) {
  return Refusal(Refusal::Kind::kInvalid, "field.invalid", message, advice, subject);
}

void check_user(const std::string& user) {
  if (user.empty() || user.size() > kLongestName)
    throw invalid("a user's name has 1 to 255 octets", "Give the name as in `sublet report`.",
                  "user");
}

void check_machine(const Turn& turn, MachineId machine) {
  if (turn.pool().machine(machine)) return;
  throw Refusal(Refusal::Kind::kNotFound, "machine.unknown",
                "the pool has no machine " + std::to_string(machine), "See `sublet machines`.",
                "machine " + std::to_string(machine));
}

std::string with_number(const char* what, MachineId machine) {
  return what + std::to_string(machine);
}

// At most `limit` of the lines after this user.
template <typename Line>
std::vector<Line> page_of(std::vector<Line> lines, const std::string& after, uint32_t limit) {
  const auto first =
      std::upper_bound(lines.begin(), lines.end(), after,
                       [](const std::string& name, const Line& line) { return name < line.user; });
  lines.erase(lines.begin(), first);
  if (lines.size() > limit) lines.resize(limit);
  return lines;
}

}  // namespace

AdministrationService::AdministrationService(Pipeline& pipeline, Archive& archive, Access& access,
                                             SettledShares shares,
                                             scheduling::PolicyChoice policies, SpoolLimits limits)
    : pipeline_(pipeline),
      archive_(archive),
      access_(access),
      shares_(std::move(shares)),
      policies_(std::move(policies)),
      limits_(std::move(limits)) {}

std::string AdministrationService::change(const Caller& caller, const std::string& request,
                                          const Act& act,
                                          const std::function<std::string(Turn&)>& work) {
  access_.require_administrator(caller, act.what);
  const std::string key = request_key(caller.uid, request);
  const std::string digest =
      arguments_digest("administration", act.what + act.value + "\n" + act.exact);
  std::string answer;
  bool repeated = false;
  pipeline_.perform([&](Turn& turn) {
    if (const auto first = turn.answered(key, digest)) {
      answer = *first;
      repeated = true;
      return;
    }
    answer = work(turn);
    turn.remember(key, digest, answer);
  });
  if (!repeated) log(Severity::info) << caller.user << ": " << act.what << act.value;
  return answer;
}

bool AdministrationService::drain(const Caller& caller, const std::string& request,
                                  MachineId machine, bool drained) {
  const auto what = with_number(drained ? "draining machine " : "resuming machine ", machine);
  return change(caller, request, {what}, [&](Turn& turn) {
           check_machine(turn, machine);
           const auto event = scheduling::MachineDrained{machine, drained};
           return std::to_string(turn.apply(event).answer.changed);
         }) == "1";
}

uint64_t AdministrationService::evict(const Caller& caller, const std::string& request,
                                      MachineId machine) {
  const auto what = with_number("evicting the jobs of machine ", machine);
  return std::stoull(change(caller, request, {what}, [&](Turn& turn) {
    check_machine(turn, machine);
    return std::to_string(turn.apply(scheduling::MachineEvicted{machine}).answer.changed);
  }));
}

void AdministrationService::set_shares(const Caller& caller, const std::string& request,
                                       const std::string& user, std::optional<double> shares) {
  using By = scheduling::SharesSet::By;
  Act act{"setting the shares of " + user};
  act.value =
      std::string(": ") + (shares ? scheduling::number_text(*shares) : "as the settings say");
  act.exact = std::to_string(std::bit_cast<uint64_t>(shares.value_or(0)));
  change(caller, request, act, [&](Turn& turn) {
    check_user(user);
    if (shares && !(*shares >= kFewestShares && *shares <= kMostShares))
      throw invalid("shares outside 0.000001 to 1,000,000", "Give a number in that range.", user);
    const std::string uncounted = turn.pool().accounts().why_uncounted(user);
    if (shares && !uncounted.empty())
      throw invalid(uncounted, "Accounts are set by scheduling.accounts in server.toml.", user);
    const auto settled = shares_.of_users.find(user);
    const double by_settings =
        settled == shares_.of_users.end() ? shares_.default_shares : settled->second;
    turn.apply(scheduling::SharesSet{user, shares.value_or(by_settings),
                                     shares ? By::kAdministrator : By::kGivenBack});
    return std::string();
  });
}

void AdministrationService::set_quota(const Caller& caller, const std::string& request,
                                      const std::string& user, std::optional<uint64_t> bytes) {
  Act act{"setting the quota of " + user};
  act.value = std::string(": ") + (bytes ? format_bytes(*bytes) : "as the settings say");
  act.exact = bytes ? std::to_string(*bytes) : "";
  change(caller, request, act, [&](Turn& turn) {
    check_user(user);
    if (bytes && *bytes > kLargestQuota)
      throw invalid("a quota of more than 1 PiB", "Give a smaller one.", user);
    if (bytes) {
      turn.changes().quotas[user] = {user, *bytes};
      std::erase(turn.changes().dropped_quotas, user);
    } else {
      turn.changes().dropped_quotas.push_back(user);
    }
    return std::string();
  });
}

void AdministrationService::set_policies(const Caller& caller, const std::string& request,
                                         const std::optional<PolicyWords>& words) {
  Act act{"switching policies"};
  act.value = words ? ":" : ": as the settings say";
  if (words)
    for (const auto& [name, value] : *words) act.value += " " + name + "=" + value;
  change(caller, request, act, [&](Turn& turn) {
    if (words && words->empty())
      throw invalid("nothing is to be changed", "Name a policy or a parameter.", "parameters");
    turn.apply(
        words ? scheduling::PolicySet{changed(turn.pool().policy().choice, *words), caller.user}
              : scheduling::PolicySet{policies_, ""});
    return std::string();
  });
}

scheduling::PolicyRecord AdministrationService::policies() {
  scheduling::PolicyRecord policy;
  pipeline_.perform([&](Turn& turn) { policy = turn.pool().policy(); });
  return policy;
}

std::vector<SharesLine> AdministrationService::shares(const std::string& after, uint32_t limit) {
  check_limit(limit);
  std::vector<scheduling::Standing> all;
  pipeline_.perform([&](Turn& turn) { all = turn.pool().standings(turn.now()); });
  std::vector<SharesLine> lines;
  for (const auto& s : all) lines.push_back({s.user, s.shares, s.by_administrator});
  return page_of(std::move(lines), after, limit);
}

std::vector<QuotaLine> AdministrationService::quotas(const Caller& caller, const std::string& after,
                                                     uint32_t limit) {
  check_limit(limit);
  std::map<std::string, QuotaLine> lines;
  const auto line = [&](const std::string& user) -> QuotaLine& {
    return lines.try_emplace(user, QuotaLine{user, limits_.quota_of(user), {}, false})
        .first->second;
  };
  line(caller.user).used = archive_.spool_use(caller.user);
  if (caller.administrator) {
    for (const auto& [user, bytes] : limits_.quotas) line(user);
    for (const auto& [user, use] : archive_.spool_uses()) line(user).used = use;
  }
  for (const auto& [user, bytes] : archive_.quotas()) {
    if (!access_.owns(caller, user)) continue;
    line(user).bytes = bytes;
    line(user).by_administrator = true;
  }
  std::vector<QuotaLine> sorted;
  for (auto& [user, one] : lines) sorted.push_back(std::move(one));
  return page_of(std::move(sorted), after, limit);
}

}  // namespace sublet::server
