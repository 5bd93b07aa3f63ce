#include "scheduling/matching/machine_queue.h"

#include <algorithm>

#include "scheduling/books/machine_book.h"
#include "scheduling/matching/job_queue.h"

namespace sublet::scheduling {

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

bool suits(const MachineClass& kind, const Requirements& needs) {
  return (needs.os.empty() || needs.os == kind.os) &&
         (needs.architecture.empty() || needs.architecture == kind.architecture) &&
         needs.cores <= kind.slot_cores &&
         allows_platform(needs.platforms, kind.os, kind.architecture);
}

MachineClass* MachineQueue::class_of(const MachineRecord& record, const JobQueue& queue) {
  const uint32_t slot_cores = std::max<uint32_t>(record.cores / std::max(record.slots, 1u), 1);
  for (const auto& kind : classes_) {
    if (kind->os == record.os && kind->architecture == record.architecture &&
        kind->slot_cores == slot_cores) {
      return kind.get();
    }
  }
  auto kind = std::make_unique<MachineClass>();
  kind->os = record.os;
  kind->architecture = record.architecture;
  kind->slot_cores = slot_cores;
  for (const auto& [needs, group] : queue.groups()) learn(*kind, group.get());
  classes_.push_back(std::move(kind));
  return classes_.back().get();
}

void MachineQueue::learn(Group* group) {
  for (const auto& kind : classes_) learn(*kind, group);
}

void MachineQueue::learn(MachineClass& kind, Group* group) {
  if (!suits(kind, group->needs)) return;
  group->places.emplace(&kind, kind.groups.size());
  kind.groups.push_back(group);
}

void MachineQueue::forget(Group* group) {
  for (const auto& [kind, place] : group->places) {
    Group* last = kind->groups.back();
    kind->groups[place] = last;
    if (last != group) last->places[kind] = place;
    kind->groups.pop_back();
  }
  group->places.clear();
}

void MachineQueue::update(Machine& machine, bool to_tail, Micros now) {
  // A paused machine is idle but must get no orders, so it is not in the queue.
  const bool idle = state_of(machine) == MachineState::kIdle && machine.paused_until == 0;
  if (machine.place != 0 && (!idle || to_tail)) remove(machine);
  if (!idle) return;
  if (machine.place == 0) {
    machine.place = ++last_place_;
    machine.idle_since = now;
    machine.kind->idle.emplace_hint(machine.kind->idle.end(), machine.place, &machine);
  }
  changed_.emplace(machine.place, &machine);
}

void MachineQueue::remove(Machine& machine) {
  if (machine.place == 0) return;
  machine.kind->idle.erase(machine.place);
  changed_.erase(machine.place);
  machine.place = 0;
}

}  // namespace sublet::scheduling
