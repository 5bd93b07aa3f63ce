// Which machines suit which jobs, amounts apart. Machines that no job tells apart are of one
// kind; jobs that ask for the same are one demand; and demands that the same kinds suit form one
// group. So there are few groups however many demands differ, and a decision evaluates none.
//
// Private to the brain; owned by the matcher; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_SUITABILITY_H_
#define SUBLET_SCHEDULING_MATCHING_SUITABILITY_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "rules/rule.h"
#include "scheduling/matching/machine_queue.h"
#include "scheduling/matching/user_line.h"
#include "scheduling/records.h"

namespace sublet::scheduling {

// Machines that differ in nothing that a demand may name.
struct MachineKind {
  std::string os;
  std::string architecture;
  uint64_t cores = 1;
  uint64_t memory_mb = 0;  // MiB, rounded down
  uint32_t slots = 1;
  size_t index = 0;
  uint64_t machines = 0;       // of this kind
  std::vector<Group*> groups;  // whose demands it meets
  IdleLine idle;               // its part of IDLE
};

// What jobs ask of a machine's kind.
struct Demand {
  Requirements asks;  // without amounts
  // None: nothing is asked, or the stored text is damaged, and then no machine suits it.
  std::optional<rules::Rule> require;
  uint64_t jobs = 0;  // live ones, an array counts once
  Group* group = nullptr;
};

// The demands that the same kinds suit, and the jobs that wait with them.
struct Group {
  std::vector<bool> suits;  // by MachineKind::index
  uint64_t demands = 0;
  LineTree lines;  // one for each user
  // Jobs were added that may fit an idle machine, none of which needs less than this; IDLE has
  // not been searched for them yet.
  bool newly_queued = false;
  Amounts newly_least;
};

// Whether machines of this kind meet the demand.
bool suits(const MachineKind& kind, const Demand& demand);

class Suitability {
 public:
  // The kind of one more machine, made if necessary: O(demands). `split`: so that demands have
  // moved to other groups.
  MachineKind* enter_kind(const MachineRecord& record, bool& split);
  // A kind without machines is forgotten.
  void leave_kind(MachineKind* kind);
  // The demand of one more job, made if necessary: O(kinds). It is forgotten, with its group, by
  // forget_spare, after the allocation, which may still look at it.
  Demand* enter_demand(const Requirements& needs);
  void leave_demand(Demand* demand);
  void forget_spare();
  // The kinds that suit jobs with these needs, by their indices.
  std::vector<bool> suited(const Requirements& needs) const;

  // Without gaps; in no particular order.
  const std::vector<std::unique_ptr<MachineKind>>& kinds() const { return kinds_; }
  const std::multimap<std::vector<bool>, std::unique_ptr<Group>>& groups() const { return groups_; }

 private:
  using KindKey = std::tuple<std::string, std::string, uint64_t, uint64_t, uint32_t>;
  static KindKey key_of(const MachineKind& kind);
  static MachineKind kind_of(const MachineRecord& record);

  Group* group_with(std::vector<bool> suits);
  bool split_groups(const MachineKind& kind);
  void sort_groups();
  std::vector<bool> suited(const Demand& demand) const;
  void acquaint(Group& group);
  void forget(Group* group);

  std::vector<std::unique_ptr<MachineKind>> kinds_;
  std::map<KindKey, MachineKind*> kinds_by_key_;
  std::map<Requirements, Demand> demands_;
  // By Group::suits; after a kind was forgotten, several may be equal.
  std::multimap<std::vector<bool>, std::unique_ptr<Group>> groups_;
  std::vector<Demand*> spare_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_SUITABILITY_H_
