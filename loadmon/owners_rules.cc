#include "loadmon/owners_rules.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace sublet::loadmon {
namespace {

using rules::Rule;
using rules::Truth;

constexpr const char* kHeading = "sublet-rules 1";
constexpr const char* kEnd = "end";
constexpr size_t kMostPairs = 64;
constexpr size_t kLongestName = 256;

std::optional<Rule> parse(const std::string& setting, const std::string& text, Truth useless) {
  if (text.empty()) return std::nullopt;
  try {
    Rule rule = Rule::parse(text, facts_vocabulary());
    if (rule.always() != useless) return rule;
  } catch (const rules::RuleError& error) {
    throw RuleRefusal(setting, error.what());
  }
  throw RuleRefusal(setting, std::string("it is always ") +
                                 (useless == Truth::kTrue ? "true" : "false") +
                                 ", so no job could ever run here");
}

std::string text_of(const std::optional<Rule>& rule) { return rule ? rule->text() : ""; }

RulePair pair_of_scope(const std::string& scope) {
  RulePair pair;
  const size_t space = scope.find(' ');
  pair.user = scope.substr(0, space);
  pair.anywhere = space != std::string::npos;
  for (const char c : pair.user)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f || pair.user.size() > kLongestName)
      throw std::invalid_argument("this cannot be the name of a user");
  if (pair.anywhere && (pair.user.empty() || scope != pair.scope()))
    throw std::invalid_argument("a scope is USER or USER anywhere");
  if (pair.anywhere && pair.user.size() > SUBLET_POOL_USER_BYTES)
    throw std::invalid_argument("of users of the pool a name has at most " +
                                std::to_string(SUBLET_POOL_USER_BYTES) + " bytes");
  return pair;
}

// The parts between tabs.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t' && fields.size() < 3)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

}  // namespace

RulePair parse_pair(const std::string& scope, const std::string& idle, const std::string& evict) {
  RulePair pair = pair_of_scope(scope);
  pair.idle = parse("idle_when", idle, Truth::kFalse);
  pair.evict = parse("evict_when", evict, Truth::kTrue);
  return pair;
}

OwnersRules::OwnersRules(std::vector<RulePair> fixed, MachineReader::Read read, JobsHere jobs)
    : fixed_(std::move(fixed)), read_(std::move(read)), jobs_(std::move(jobs)) {
  read_if_needed();
}

void OwnersRules::read_if_needed() {
  bool needed = !pool_.wanted().empty();
  for (const auto* pairs : both()) {
    for (const RulePair& pair : *pairs) {
      needed = needed || !pair.user.empty();
      for (const auto* rule : {&pair.idle, &pair.evict}) {
        if (!*rule) continue;
        for (const size_t name : (*rule)->names())
          needed = needed || is_of_machine(static_cast<Fact>(name));
      }
    }
  }
  if (needed && !reader_) {
    reader_ = std::make_unique<MachineReader>(read_);
    readings_ = 0;
  }
  if (!needed) {  // what it read would be old when it is needed again
    reader_.reset();
    machine_.reset();
    facts_.set_machine(nullptr);
  }
}

void OwnersRules::set(const std::string& scope, const std::string& idle, const std::string& evict) {
  for (const std::string& text : {idle, evict})
    if (text.find_first_of("\n\r\t") != std::string::npos)
      throw std::invalid_argument("a rule is one line, without tabs");
  RulePair pair = parse_pair(scope, idle, evict);
  const auto at = std::lower_bound(
      own_.begin(), own_.end(), scope,
      [](const RulePair& one, const std::string& other) { return one.scope() < other; });
  const bool known = at != own_.end() && at->scope() == scope;
  const bool removes = !pair.idle && !pair.evict;
  if (!known && !removes && own_.size() >= kMostPairs)
    throw std::invalid_argument("there are rules for " + std::to_string(kMostPairs) +
                                " users already");
  unreadable_ = false;
  if (removes && known) own_.erase(at);
  if (!removes && known) *at = std::move(pair);
  if (!removes && !known) own_.insert(at, std::move(pair));
  readings_ = 0;
  read_if_needed();
}

std::string OwnersRules::stored_form() const {
  if (own_.empty()) return "";
  std::string form = std::string(kHeading) + "\n";
  for (const RulePair& pair : own_)
    form += pair.scope() + "\t" + text_of(pair.idle) + "\t" + text_of(pair.evict) + "\n";
  return form + kEnd + "\n";
}

bool OwnersRules::load(const std::string& form) {
  own_.clear();
  std::istringstream lines(form);
  std::string line;
  unreadable_ = true;
  if (!std::getline(lines, line) || line != kHeading) return false;
  try {
    std::vector<std::vector<std::string>> all;
    while (std::getline(lines, line) && line != kEnd) all.push_back(fields_of(line));
    if (line != kEnd) return false;
    for (const auto& fields : all)
      if (fields.size() == 3) set(fields[0], fields[1], fields[2]);
    unreadable_ = own_.size() != all.size();
  } catch (const std::invalid_argument&) {
    unreadable_ = true;
  }
  return !unreadable_;
}

std::vector<OwnersRules::Line> OwnersRules::lines() const {
  std::vector<Line> all;
  for (const auto* pairs : both())
    for (const RulePair& pair : *pairs)
      all.push_back({pairs == &fixed_, pair.scope(), text_of(pair.idle), text_of(pair.evict)});
  return all;
}

std::optional<bool> OwnersRules::is_logged_in_here(const std::string& user) const {
  const rules::Value& users = facts_.values()[static_cast<size_t>(Fact::kUsers)];
  if (!users.is_known()) return std::nullopt;
  const auto names = users.texts();
  return std::find(names.begin(), names.end(), user) != names.end();
}

bool OwnersRules::applies(const RulePair& pair) const {
  if (pair.user.empty()) return true;
  const bool here = is_logged_in_here(pair.user).value_or(true);
  return here || (pair.anywhere && pool_.is_logged_in(pair.user, now_).value_or(true));
}

bool OwnersRules::note_pool(const std::string& text) {
  const bool noted = pool_.note(text, now_);
  read_if_needed();
  return noted;
}

std::string OwnersRules::pool_answer() const {
  std::string text;
  if (!pool_.wanted().empty() && !facts_.values()[static_cast<size_t>(Fact::kUsers)].is_known())
    text += "unknown\n";
  for (const auto* pairs : both())
    for (const RulePair& pair : *pairs)
      if (pair.anywhere) text += "ask " + pair.user + "\n";
  for (const std::string& user : pool_.wanted())
    if (is_logged_in_here(user).value_or(false)) text += "here " + user + "\n";
  if (text.size() <= SUBLET_OWNER_RULE_BYTES) return text;
  return text.substr(0, text.rfind('\n', SUBLET_OWNER_RULE_BYTES - 1) + 1);
}

void OwnersRules::refresh(int64_t now) {
  now_ = now;
  if (pool_.forget_old(now)) read_if_needed();
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
  sample->rule_evicts = sample->rule_withholds = sample->pool_withholds = false;
  facts_.set_sample(*sample);
  for (const auto* pairs : both()) {
    for (const RulePair& pair : *pairs) {
      if (!applies(pair)) continue;
      sample->rule_evicts = sample->rule_evicts || (!pair.anywhere && evicts(pair));
      const bool withholds = !permits(pair);
      sample->rule_withholds = sample->rule_withholds || withholds;
      sample->pool_withholds = sample->pool_withholds || (pair.anywhere && withholds);
    }
  }
  if (unreadable_) sample->rule_evicts = sample->rule_withholds = true;
}

std::vector<std::string> OwnersRules::reasons() const {
  std::vector<std::string> all;
  if (unreadable_) all.emplace_back("the owner's rules cannot be read: set them again");
  for (const auto* pairs : both()) {
    for (const RulePair& pair : *pairs) {
      if (!applies(pair) || permits(pair)) continue;
      const bool by_evict = pair.evict && evicts(pair);
      const Rule& rule = by_evict ? *pair.evict : *pair.idle;
      std::string scope = pair.user.empty() ? "" : " for " + pair.scope();
      if (pair.anywhere && !is_logged_in_here(pair.user).value_or(false) &&
          !pool_.is_logged_in(pair.user, now_))
        scope += " (not known whether logged in)";
      for (std::string& line : rule.why(facts_.values()))
        all.push_back((by_evict ? "evict_when" : "idle_when") + scope + ": " + line);
    }
  }
  return all;
}

bool OwnersRules::use(Fact fact) const {
  const auto asks = [fact](const std::optional<rules::Rule>& rule) {
    return rule && std::find(rule->names().begin(), rule->names().end(),
                             static_cast<size_t>(fact)) != rule->names().end();
  };
  for (const auto* pairs : both())
    for (const RulePair& pair : *pairs)
      if (asks(pair.idle) || asks(pair.evict)) return true;
  return false;
}

void OwnersRules::note_unknown() const {
  std::set<std::string> names;
  for (const auto* pairs : both())
    for (const RulePair& pair : *pairs)
      for (const auto* rule : {&pair.idle, &pair.evict}) {
        if (!*rule) continue;
        for (const size_t name : (*rule)->names())
          if (is_of_machine(static_cast<Fact>(name)) && !facts_.values()[name].is_known())
            names.insert(facts_vocabulary()[name].name);
      }
  for (const std::string& name : names)
    log(Severity::warning) << "a rule asks for '" << name
                           << "', which this machine does not tell: that speaks against jobs, "
                              "unless the rule says `exist "
                           << name << " and ...`";
}

}  // namespace sublet::loadmon
