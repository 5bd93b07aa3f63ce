#include "loadmon/owners_rules.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace sublet::loadmon {
namespace {

using rules::Rule;
using rules::Truth;

std::optional<Rule> parse(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return Rule::parse(text, facts_vocabulary());
}

void for_each(const std::vector<RulePair>& pairs, const std::function<void(const Rule&)>& f) {
  for (const RulePair& pair : pairs) {
    if (pair.idle) f(*pair.idle);
    if (pair.evict) f(*pair.evict);
  }
}

}  // namespace

bool use(const std::vector<RulePair>& pairs, Fact fact) {
  bool used = false;
  for_each(pairs, [&](const Rule& rule) {
    used =
        used || std::count(rule.names().begin(), rule.names().end(), static_cast<size_t>(fact)) > 0;
  });
  return used;
}

RulePair parse_pair(const std::string& idle, const std::string& evict) {
  RulePair pair{parse(idle), parse(evict)};
  if (pair.idle && pair.idle->always() == Truth::kFalse)
    throw std::invalid_argument("it is always false, so no job could ever run here");
  if (pair.evict && pair.evict->always() == Truth::kTrue)
    throw std::invalid_argument("it is always true, so no job could ever run here");
  return pair;
}

OwnersRules::OwnersRules(std::vector<RulePair> pairs, MachineReader::Read read, JobsHere jobs)
    : pairs_(std::move(pairs)), jobs_(std::move(jobs)) {
  bool needs_machine = false;
  for (size_t fact = 0; fact < static_cast<size_t>(Fact::kCount); ++fact)
    needs_machine = needs_machine || (is_of_machine(static_cast<Fact>(fact)) &&
                                      use(pairs_, static_cast<Fact>(fact)));
  if (needs_machine) reader_ = std::make_unique<MachineReader>(std::move(read));
}

void OwnersRules::refresh(int64_t now) {
  if (pairs_.empty()) return;
  facts_.set_time(system_clock().utc_us());
  if (!reader_ || !reader_->refresh(now, jobs_.processes, &machine_)) return;
  facts_.set_machine(machine_ ? &*machine_ : nullptr);
  // The first reading has no rates.
  if (++readings_ == 2) note_unknown();
}

bool OwnersRules::evicts(const RulePair& pair) const {
  if (pair.evict) return pair.evict->evaluate(facts_.values()) != Truth::kFalse;
  return pair.idle && pair.idle->evaluate(facts_.values()) != Truth::kTrue;
}

bool OwnersRules::permits(const RulePair& pair) const {
  return !evicts(pair) && (!pair.idle || pair.idle->evaluate(facts_.values()) == Truth::kTrue);
}

void OwnersRules::judge(protocol::PresenceSample* sample) {
  sample->rule_evicts = sample->rule_withholds = false;
  if (pairs_.empty()) return;
  facts_.set_sample(*sample);
  for (const RulePair& pair : pairs_) {
    sample->rule_evicts = sample->rule_evicts || evicts(pair);
    sample->rule_withholds = sample->rule_withholds || !permits(pair);
  }
}

std::vector<std::string> OwnersRules::reasons() const {
  std::vector<std::string> all;
  for (const RulePair& pair : pairs_) {
    if (permits(pair)) continue;
    const bool by_evict = pair.evict && evicts(pair);
    const Rule& rule = by_evict ? *pair.evict : *pair.idle;
    for (std::string& line : rule.why(facts_.values()))
      all.push_back(std::string(by_evict ? "evict_when: " : "idle_when: ") + line);
  }
  return all;
}

void OwnersRules::note_unknown() const {
  std::set<std::string> names;
  for_each(pairs_, [&](const Rule& rule) {
    for (const size_t name : rule.names())
      if (is_of_machine(static_cast<Fact>(name)) && !facts_.values()[name].is_known())
        names.insert(facts_vocabulary()[name].name);
  });
  for (const std::string& name : names)
    log(Severity::warning) << "a rule asks for '" << name
                           << "', which this machine does not tell: that speaks against jobs, "
                              "unless the rule says `exist "
                           << name << " and ...`";
}

}  // namespace sublet::loadmon
