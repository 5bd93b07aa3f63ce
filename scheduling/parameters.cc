#include "scheduling/parameters.h"

#include <algorithm>
#include <vector>

#include "rules/named_amounts.h"
#include "scheduling/accounts.h"
#include "scheduling/machine_limits.h"
#include "scheduling/policies/job_policies.h"
#include "scheduling/policies/machine_policies.h"
#include "scheduling/policies/victim_policies.h"

namespace sublet::scheduling {
namespace {

constexpr Micros kDay = 86'400'000'000;

// "" if the name is among the known ones.
std::string unknown(const std::string& what, const std::string& name,
                    const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return "";
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  return what + " '" + name + "' is not known; known: " + list;
}

}  // namespace

bool same_when_fixed(const Parameters& a, const Parameters& b) {
  Parameters as_b = a;
  static_cast<PolicyChoice&>(as_b) = b;
  return as_b == b;
}

std::string problem_with(const PolicyChoice& choice) {
  std::string problem = unknown("job_policy", choice.job_policy, known_job_policies());
  if (problem.empty())
    problem = unknown("machine_policy", choice.machine_policy, known_machine_policies());
  if (problem.empty())
    problem = unknown("victim_policy", choice.victim_policy, known_victim_policies());
  if (!problem.empty()) return problem;
  if (choice.candidates == 0) return "candidates must be positive";
  if (choice.half_life <= 0) return "half_life must be positive";
  if (choice.throttle_span <= 0 || choice.throttle_span > kDay)
    return "throttle_span must be positive, and a day at most";
  if (choice.wide_wait < 0) return "wide_wait must not be negative";
  if (!(choice.floor >= 0 && choice.floor <= 1)) return "floor must be 0 to 1";
  try {
    rules::NamedAmounts::parse(choice.licences);
  } catch (const rules::AmountError& e) {
    return std::string("licences: ") + e.what();
  }
  if (!parse_machine_limits(choice.most_per_machine)) return "most_per_machine cannot be read";
  return "";
}

std::string problem_with(const Parameters& parameters) {
  const PolicyChoice& choice = parameters;
  if (const std::string problem = problem_with(choice); !problem.empty()) return problem;
  if (parameters.tick <= 0 || parameters.lease <= 0) return "tick and lease must be positive";
  if (parameters.leaving_wait < 0 || parameters.refusal_pause < 0)
    return "leaving_wait and refusal_pause must not be negative";
  if (parameters.rest_least < 0 || parameters.rest_most < parameters.rest_least ||
      parameters.rest_most > kDay)
    return "rest_least must be 0 to rest_most, which must be a day at most";
  if (parameters.short_run < 0 || parameters.ahead_wait <= 0 || parameters.ahead_wait > kDay)
    return "short_run must not be negative, and ahead_wait be positive, and a day at most";
  if (parameters.ahead_return <= 0 || parameters.ahead_return > kDay)
    return "ahead_return must be positive, and a day at most";
  if (!(parameters.default_shares > 0)) return "default_shares must be positive";
  try {
    Accounts::parse(parameters.accounts);
  } catch (const AccountError& e) {
    return std::string("accounts: ") + e.what();
  }
  return "";
}

}  // namespace sublet::scheduling
