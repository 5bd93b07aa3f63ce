// Which machines suit which jobs. Machines that no job tells apart, amounts aside, are of one kind;
// jobs that ask for the same, and for amounts of the same size, are one demand; and demands of one
// size that ask for the same named amounts, may start at the same hours, and that the same kinds
// suit, form one group. What a group asks by name is looked at once for each machine, and licences
// and hours once for all. So there are few groups however many demands differ, and a decision
// evaluates none.
//
// Private to the brain; owned by the matcher; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_SUITABILITY_H_
#define SUBLET_SCHEDULING_MATCHING_SUITABILITY_H_

#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rules/named_amounts.h"
#include "rules/rule.h"
#include "scheduling/books/hours_book.h"
#include "scheduling/books/licence_book.h"
#include "scheduling/matching/group_lines.h"
#include "scheduling/matching/machine_queue.h"
#include "scheduling/records.h"

namespace sublet::scheduling {

// Machines that differ in nothing that a demand may name.
struct MachineKind {
  std::string os;
  std::string architecture;
  uint64_t cores = 1;
  uint64_t memory_mb = 0;  // MiB, rounded down
  uint32_t slots = 1;
  rules::NamedAmounts offers;  // besides
  size_t index = 0;
  uint64_t machines = 0;       // of this kind
  std::vector<Group*> groups;  // whose demands it meets
  IdleLine idle;               // its part of IDLE
};

// The size of what a job needs: each amount as a power of two, of memory and disk in units of
// 64 MiB. So a machine has room for all jobs of a size, or lacks something that they all need at
// least half of.
inline uint32_t size_of(const Amounts& needs) {
  const auto power = [](uint64_t amount) { return static_cast<uint32_t>(std::bit_width(amount)); };
  return power(needs.cores) << 16 | power(needs.memory >> 26) << 8 | power(needs.disk >> 26);
}

// What jobs ask of a machine's kind.
struct Demand {
  Requirements asks;                 // without amounts; the jobs share its strings
  uint32_t size = 0;                 // of the amounts
  rules::NamedAmounts named;         // besides
  const OpenHours* hours = nullptr;  // at which its jobs may be started; null: at any time
  // The stored text of these amounts is damaged: no machine suits it.
  bool unreadable = false;
  // None: nothing is asked, or the stored text is damaged, and then no machine suits it.
  std::optional<rules::Rule> require;
  // None: all are alike, or the stored text is damaged.
  std::optional<rules::Formula> prefer;
  // What it prefers, by MachineKind::index, as Suitability::preferences found it.
  std::vector<double> preferences;
  uint64_t preferences_as_of = 0;  // Suitability's version of the kinds
  uint64_t jobs = 0;               // live ones, an array counts once
  Group* group = nullptr;
};

// The demands of one size that the same kinds suit, that ask for the same named amounts and that
// may start at the same hours, and the jobs that wait with them.
struct Group {
  std::vector<bool> suits;  // by MachineKind::index
  uint32_t size = 0;
  rules::NamedAmounts named;
  rules::NamedAmounts licences;      // those of them that are the pool's,
  rules::NamedAmounts of_machine;    // and the others
  const OpenHours* hours = nullptr;  // null: at any time
  uint64_t demands = 0;
  uint64_t bit = 0;  // one of 64, by which most groups are told apart
  GroupLines lines;  // one for each user
  // Jobs were added that may fit an idle machine, none of which needs less than this; IDLE has
  // not been searched for them yet.
  bool newly_queued = false;
  Amounts newly_least;
};

class Suitability {
 public:
  Suitability(const LicenceBook& licences, HoursBook& hours) : licences_(licences), hours_(hours) {}

  // Other names are licences, or there are other numbers of them: demands have moved to other
  // groups. No job is queued. O(demands * kinds).
  void note_licences();
  // The kind of one more machine, made if necessary: O(demands). `split`: so that demands have
  // moved to other groups.
  MachineKind* enter_kind(const MachineRecord& record, bool& split);
  // A kind without machines is forgotten.
  void leave_kind(MachineKind* kind);
  // The demand of one more job, made if necessary: O(kinds). From then on the job's needs share its
  // strings. It is forgotten, with its group, by forget_spare, after the allocation, which may
  // still look at it.
  Demand* enter_demand(Requirements& needs);
  void leave_demand(Demand* demand);
  void forget_spare();
  // The kinds that suit jobs with these needs, by their indices.
  std::vector<bool> suited(const Requirements& needs) const;

  // The value of the demand's `prefer` for each kind, by MachineKind::index: the least number if it
  // is not known, all alike if there is none. O(kinds) if they have changed since the last time.
  const std::vector<double>& preferences(Demand& demand) const;

  // Without gaps; in no particular order.
  const std::vector<std::unique_ptr<MachineKind>>& kinds() const { return kinds_; }
  using GroupKey = std::tuple<std::vector<bool>, uint32_t, std::string, std::string>;
  const std::multimap<GroupKey, std::unique_ptr<Group>>& groups() const { return groups_; }

 private:
  using KindKey = std::tuple<std::string, std::string, uint64_t, uint64_t, uint32_t, std::string>;
  static KindKey key_of(const MachineKind& kind);
  static MachineKind kind_of(const MachineRecord& record);

  static GroupKey key_of(const Group& group) {
    return {group.suits, group.size, group.named.text(), text_of(group.hours)};
  }
  static std::string text_of(const OpenHours* hours) { return hours == nullptr ? "" : hours->text; }
  void ask(Group& group, const rules::NamedAmounts& named) const;
  // Whether such machines, or the pool, have so much if nobody has reserved any.
  bool offers(const MachineKind& kind, const rules::NamedAmounts& named) const;
  // Whether machines of this kind meet the demand.
  bool suits(const MachineKind& kind, const Demand& demand) const;
  std::unique_ptr<Group> new_group();
  Group* group_with(const Demand& demand);
  bool split_groups(const MachineKind& kind);
  void sort_groups();
  std::vector<bool> suited(const Demand& demand) const;
  void acquaint(Group& group);
  void forget_spare_groups();
  void forget(Group* group);

  const LicenceBook& licences_;
  HoursBook& hours_;
  std::vector<std::unique_ptr<MachineKind>> kinds_;
  uint64_t version_ = 0;  // counts the changes of kinds_
  std::map<KindKey, MachineKind*> kinds_by_key_;
  std::map<std::pair<Requirements, uint32_t>, Demand> demands_;
  // By suits, size, named amounts and hours; after a kind was forgotten, several may be equal.
  std::multimap<GroupKey, std::unique_ptr<Group>> groups_;
  uint64_t made_groups_ = 0;
  std::vector<Demand*> spare_;
  bool spare_groups_ = false;  // some have no demands
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_SUITABILITY_H_
