// When this machine may be lent, as its owner and its administrator put it: rules over what the
// senses see and what is known of the machine (docs/load-monitor.md). Each pair must hold for
// itself. What is not known speaks against the jobs.
//
// One thread. judge() is on the eviction path: it neither allocates nor waits.
#ifndef SUBLET_LOADMON_OWNERS_RULES_H_
#define SUBLET_LOADMON_OWNERS_RULES_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "loadmon/facts/facts.h"
#include "loadmon/facts/machine_reader.h"
#include "loadmon/jobs_here.h"
#include "loadmon/pool_logins.h"
#include "protocol/presence.h"
#include "rules/rule.h"

namespace sublet::loadmon {

// When jobs may come, and when they must leave. Without `evict`, they must leave when `idle` does
// not hold; without `idle`, they may come when `evict` does not hold. With both, a value between
// them neither brings nor drives away anybody.
struct RulePair {
  std::string user;  // it counts only while this one is logged in here; empty: always
  // Or anywhere in the pool. What is known of the pool may only keep jobs from coming, also to an
  // idle machine: such a pair drives none away.
  bool anywhere = false;
  std::optional<rules::Rule> idle, evict;

  // "", "anna", "anna anywhere".
  std::string scope() const { return user + (anywhere ? " anywhere" : ""); }
};

// what(): "evict_when: column 1: unknown name 'z'".
class RuleRefusal : public std::invalid_argument {
 public:
  RuleRefusal(const std::string& setting, const std::string& problem)
      : std::invalid_argument(setting + ": " + problem), setting_(setting) {}
  // "idle_when" or "evict_when"
  const std::string& setting() const { return setting_; }

 private:
  std::string setting_;
};

// From two texts; "": none. Throws RuleRefusal, also if no job could ever run by it, or
// std::invalid_argument for a scope that cannot be one.
RulePair parse_pair(const std::string& scope, const std::string& idle, const std::string& evict);

class OwnersRules {
 public:
  // `fixed`: the administrator's, which always count. `read`: reads the machine's state; used
  // only if a rule needs it.
  OwnersRules(std::vector<RulePair> fixed, MachineReader::Read read, JobsHere jobs);

  // The owner's own: replaces the pair of this scope, or removes it if both texts are empty.
  // Throws as parse_pair(), or std::invalid_argument for too many pairs; then nothing has changed.
  void set(const std::string& scope, const std::string& idle, const std::string& evict);
  // The owner's own, to be stored; empty: there are none.
  std::string stored_form() const;
  // From stored_form(). False: it cannot be read; no job may come until set() is called.
  bool load(const std::string& form);
  // All, the administrator's first.
  struct Line {
    bool fixed = false;
    std::string scope, idle, evict;
  };
  std::vector<Line> lines() const;

  // Who is logged in in the pool, and of whom the pool wants to know (SUBLET_OWNER_POOL). False:
  // this is no such text.
  bool note_pool(const std::string& text);
  // The answer: SUBLET_FRAME_OWNER_LOGINS.
  std::string pool_answer() const;

  // Whether one of them asks for it.
  bool use(Fact fact) const;

  // Between two samples: the time of day, and news of the machine's state.
  void refresh(int64_t now);
  // Says in the sample what the rules say of it.
  void judge(protocol::PresenceSample* sample);
  // The rules that keep jobs away by the last sample, with the facts that decide it:
  // "battery < 20 (battery is 12)". Empty: none does.
  std::vector<std::string> reasons() const;

 private:
  // Names what a rule uses and this machine does not tell, in the log.
  void note_unknown() const;
  void read_if_needed();
  // fixed_ and own_
  std::array<const std::vector<RulePair>*, 2> both() const { return {&fixed_, &own_}; }
  std::optional<bool> is_logged_in_here(const std::string& user) const;
  // If nobody knows who is logged in, the user is.
  bool applies(const RulePair& pair) const;
  bool permits(const RulePair& pair) const;  // that jobs come
  bool evicts(const RulePair& pair) const;

  const std::vector<RulePair> fixed_;
  std::vector<RulePair> own_;  // sorted by scope
  bool unreadable_ = false;    // own_
  const MachineReader::Read read_;
  const JobsHere jobs_;
  std::unique_ptr<MachineReader> reader_;
  Facts facts_;
  std::optional<MachineState> machine_;
  int readings_ = 0;
  PoolLogins pool_;
  int64_t now_ = 0;  // of the last sample, CLOCK_BOOTTIME
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_OWNERS_RULES_H_
