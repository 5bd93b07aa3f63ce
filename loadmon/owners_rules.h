// When this machine may be lent, as its owner and its administrator put it: rules over what the
// senses see and what is known of the machine (docs/load-monitor.md). Each pair must hold for
// itself. What is not known speaks against the jobs.
//
// One thread. judge() is on the eviction path: it neither allocates nor waits.
#ifndef SUBLET_LOADMON_OWNERS_RULES_H_
#define SUBLET_LOADMON_OWNERS_RULES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loadmon/facts/facts.h"
#include "loadmon/facts/machine_reader.h"
#include "loadmon/jobs_here.h"
#include "protocol/presence.h"
#include "rules/rule.h"

namespace sublet::loadmon {

// When jobs may come, and when they must leave. Without `evict`, they must leave when `idle` does
// not hold; without `idle`, they may come when `evict` does not hold. With both, a value between
// them neither brings nor drives away anybody.
struct RulePair {
  std::optional<rules::Rule> idle, evict;
};

// From two texts; "": none. Throws rules::RuleError; std::invalid_argument if no job could ever
// run by it.
RulePair parse_pair(const std::string& idle, const std::string& evict);

// Whether one of the rules needs this fact.
bool use(const std::vector<RulePair>& pairs, Fact fact);

class OwnersRules {
 public:
  // `read`: reads the machine's state; used only if a rule needs it.
  OwnersRules(std::vector<RulePair> pairs, MachineReader::Read read, JobsHere jobs);

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
  bool permits(const RulePair& pair) const;  // that jobs come
  bool evicts(const RulePair& pair) const;

  const std::vector<RulePair> pairs_;
  const JobsHere jobs_;
  std::unique_ptr<MachineReader> reader_;
  Facts facts_;
  std::optional<MachineState> machine_;
  int readings_ = 0;
};

}  // namespace sublet::loadmon

#endif  // SUBLET_LOADMON_OWNERS_RULES_H_
