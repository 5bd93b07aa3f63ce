#include "scheduling/matching/suitability.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduling/matching/machine_words.h"

namespace sublet::scheduling {
namespace {

// What the amounts ask is decided for each machine, when it has room.
Requirements without_amounts(const Requirements& needs) {
  Requirements asks = needs;
  asks.cores = 0;
  asks.memory = asks.disk = 0;
  return asks;
}

// They are the same strings: each is kept once.
void share_strings(Requirements& needs, const Requirements& asks) {
  needs.os.share(asks.os);
  needs.architecture.share(asks.architecture);
  needs.platforms.share(asks.platforms);
  needs.require.share(asks.require);
  needs.prefer.share(asks.prefer);
  needs.resources.share(asks.resources);
  needs.hours.share(asks.hours);
}

// It was checked when it was submitted.
template <typename Expression>
std::optional<Expression> parsed(Expression (*parse)(const std::string&), const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return parse(text);
  } catch (const rules::RuleError&) {
    return std::nullopt;
  }
}

}  // namespace

bool allows_platform(std::string_view platforms, std::string_view os,
                     std::string_view architecture) {
  if (platforms.empty()) return true;
  while (!platforms.empty()) {
    const size_t end = std::min(platforms.find(' '), platforms.size());
    const std::string_view one = platforms.substr(0, end);
    const bool same = one.size() == os.size() + 1 + architecture.size() && one.starts_with(os) &&
                      one.ends_with(architecture) && one[os.size()] == '/';
    if (same) return true;
    platforms.remove_prefix(std::min(end + 1, platforms.size()));
  }
  return false;
}

bool Suitability::offers(const MachineKind& kind, const rules::NamedAmounts& named) const {
  const rules::NamedAmounts& licences = licences_.offered();
  return std::all_of(named.begin(), named.end(), [&](const rules::NamedAmounts::Pair& asked) {
    const auto& offered = licences.has(asked.first) ? licences : kind.offers;
    return asked.second <= offered.of(asked.first);
  });
}

bool Suitability::suits(const MachineKind& kind, const Demand& demand) const {
  const Requirements& asks = demand.asks;
  return (asks.os.empty() || asks.os == kind.os) &&
         (asks.architecture.empty() || asks.architecture == kind.architecture) &&
         allows_platform(asks.platforms, kind.os, kind.architecture) &&
         (demand.require ? holds(*demand.require, kind) : asks.require.empty()) &&
         !demand.unreadable && offers(kind, demand.named);
}

Suitability::KindKey Suitability::key_of(const MachineKind& kind) {
  return {kind.os, kind.architecture, kind.cores, kind.memory_mb, kind.slots, kind.offers.text()};
}

MachineKind Suitability::kind_of(const MachineRecord& record) {
  MachineKind kind;
  kind.os = record.os;
  kind.architecture = record.architecture;
  kind.cores = record.cores;
  kind.memory_mb = record.memory >> 20;
  kind.slots = record.slots;
  kind.offers = rules::NamedAmounts::stored(record.resources);
  kind.offers.forget_zeros();
  return kind;
}

MachineKind* Suitability::enter_kind(const MachineRecord& record, bool& split) {
  MachineKind wanted = kind_of(record);
  MachineKind*& kind = kinds_by_key_[key_of(wanted)];
  if (kind == nullptr) {
    wanted.index = kinds_.size();
    kinds_.push_back(std::make_unique<MachineKind>(std::move(wanted)));
    kind = kinds_.back().get();
    ++version_;
    split = split_groups(*kind);
  }
  ++kind->machines;
  return kind;
}

// The demands of a group that a new kind suits part from the others: who are first in the order of
// demands keep the group.
bool Suitability::split_groups(const MachineKind& kind) {
  std::map<std::pair<Group*, bool>, Group*> parts;
  std::map<Group*, bool> kept;
  std::vector<std::unique_ptr<Group>> made;
  for (auto& [key, demand] : demands_) {
    Group* before = demand.group;
    const bool suited = suits(kind, demand);
    Group*& part = parts[{before, suited}];
    if (part == nullptr && kept.try_emplace(before, suited).second) part = before;
    if (part == nullptr) {
      made.push_back(new_group());
      part = made.back().get();
      part->suits = before->suits;
      part->size = before->size;
      part->hours = before->hours;
      ask(*part, before->named);
    }
    demand.group = part;
    --before->demands;
    ++part->demands;
  }
  for (auto& [part, group] : parts) {
    group->suits.resize(kinds_.size());
    group->suits[kind.index] = part.second;
    if (part.second) kinds_[kind.index]->groups.push_back(group);
  }
  for (std::unique_ptr<Group>& group : made) {
    for (size_t i = 0; i < kind.index; ++i)
      if (group->suits[i]) kinds_[i]->groups.push_back(group.get());
    groups_.emplace(key_of(*group), std::move(group));
  }
  sort_groups();
  return !made.empty();
}

// By their suits, which have changed.
void Suitability::sort_groups() {
  std::multimap<GroupKey, std::unique_ptr<Group>> sorted;
  for (auto& [key, group] : groups_) {
    group->suits.resize(kinds_.size());
    sorted.emplace(key_of(*group), std::move(group));
  }
  groups_ = std::move(sorted);
}

// The last kind takes the place of the one that goes.
void Suitability::leave_kind(MachineKind* kind) {
  if (--kind->machines > 0) return;
  const size_t at = kind->index, last = kinds_.size() - 1;
  kinds_by_key_.erase(key_of(*kind));
  kinds_[last]->index = at;
  std::swap(kinds_[at], kinds_[last]);
  kinds_.pop_back();
  ++version_;
  for (auto& [key, group] : groups_) {
    group->suits[at] = group->suits[last];
    group->suits.pop_back();
  }
  sort_groups();
}

std::unique_ptr<Group> Suitability::new_group() {
  auto group = std::make_unique<Group>();
  group->bit = uint64_t{1} << made_groups_++ % 64;
  return group;
}

Group* Suitability::group_with(const Demand& demand) {
  GroupKey key{suited(demand), demand.size, demand.named.text(), text_of(demand.hours)};
  const auto found = groups_.find(key);
  if (found != groups_.end()) return found->second.get();
  auto group = new_group();
  group->suits = std::get<0>(key);
  group->size = demand.size;
  group->hours = demand.hours;
  ask(*group, demand.named);
  acquaint(*group);
  return groups_.emplace(std::move(key), std::move(group))->second.get();
}

void Suitability::ask(Group& group, const rules::NamedAmounts& named) const {
  group.named = named;
  group.licences = licences_.licences_in(named);
  group.of_machine = licences_.others_in(named);
}

void Suitability::note_licences() {
  for (auto& [key, group] : groups_) ask(*group, rules::NamedAmounts(group->named));
  for (auto& [key, demand] : demands_) {
    --demand.group->demands;
    demand.group = group_with(demand);
    ++demand.group->demands;
  }
  spare_groups_ = true;
}

void Suitability::acquaint(Group& group) {
  for (const auto& kind : kinds_)
    if (group.suits[kind->index]) kind->groups.push_back(&group);
}

Demand* Suitability::enter_demand(Requirements& needs) {
  const auto [it, made] =
      demands_.try_emplace({without_amounts(needs), size_of(amounts_of(needs))});
  Demand& demand = it->second;
  ++demand.jobs;
  if (!made) {
    share_strings(needs, demand.asks);
    return &demand;
  }
  std::tie(demand.asks, demand.size) = it->first;
  demand.require = parsed(parse_requirement, demand.asks.require.str());
  demand.prefer = parsed(parse_preference, demand.asks.prefer.str());
  demand.named = rules::NamedAmounts::stored(demand.asks.resources, &demand.unreadable);
  demand.hours = hours_.enter(demand.asks.hours.str());
  demand.group = group_with(demand);
  ++demand.group->demands;
  return &demand;
}

std::vector<bool> Suitability::suited(const Demand& demand) const {
  std::vector<bool> suited(kinds_.size());
  for (const auto& kind : kinds_) suited[kind->index] = suits(*kind, demand);
  return suited;
}

std::vector<bool> Suitability::suited(const Requirements& needs) const {
  Demand demand;
  demand.asks = without_amounts(needs);
  demand.require = parsed(parse_requirement, needs.require.str());
  demand.named = rules::NamedAmounts::stored(needs.resources, &demand.unreadable);
  return suited(demand);
}

const std::vector<double>& Suitability::preferences(Demand& demand) const {
  if (demand.preferences_as_of == version_) return demand.preferences;
  demand.preferences.assign(kinds_.size(), std::numeric_limits<double>::lowest());
  if (demand.prefer)
    for (const auto& kind : kinds_)
      if (const auto value = value_for(*demand.prefer, *kind))
        demand.preferences[kind->index] = *value;
  demand.preferences_as_of = version_;
  return demand.preferences;
}

void Suitability::leave_demand(Demand* demand) {
  if (--demand->jobs == 0) spare_.push_back(demand);
}

void Suitability::forget_spare() {
  std::sort(spare_.begin(), spare_.end());
  spare_.erase(std::unique(spare_.begin(), spare_.end()), spare_.end());
  std::vector<const OpenHours*> left;
  for (Demand* demand : spare_) {
    if (demand->jobs > 0) continue;
    Group* group = demand->group;
    if (demand->hours != nullptr) left.push_back(demand->hours);
    demands_.erase(demands_.find({demand->asks, demand->size}));
    if (--group->demands == 0) forget(group);
  }
  spare_.clear();
  if (spare_groups_) forget_spare_groups();
  // Groups may refer to them until now.
  for (const OpenHours* hours : left) hours_.leave(hours);
}

void Suitability::forget_spare_groups() {
  std::vector<Group*> spare;
  for (auto& [key, group] : groups_)
    if (group->demands == 0) spare.push_back(group.get());
  for (Group* group : spare) forget(group);
  spare_groups_ = false;
}

void Suitability::forget(Group* group) {
  for (const auto& kind : kinds_)
    if (group->suits[kind->index]) std::erase(kind->groups, group);
  auto [it, end] = groups_.equal_range(key_of(*group));
  it = std::find_if(it, end, [group](const auto& entry) { return entry.second.get() == group; });
  groups_.erase(it);
}

}  // namespace sublet::scheduling
