// IDLE is served from its head: each machine gets the best waiting job that fits it
// (JobQueue::best_for), or keeps its position if none does. Only possible changes are
// considered: machines that have changed, and, for groups with a new job that may fit one,
// all idle machines that suit them, once. So no decision scans the queue, and after each
// apply no waiting job fits an idle machine.
#include "scheduling/matching/matcher.h"

#include <algorithm>

#include "scheduling/books/machine_book.h"

namespace sublet::scheduling {

Group* Matcher::enter_group(const Requirements& needs) {
  bool made = false;
  Group* group = queue_.group(needs, &made);
  if (made) idle_.learn(group);
  ++group->jobs;
  return group;
}

void Matcher::leave_group(Group* group) {
  if (--group->jobs == 0) spare_groups_.push_back(group);
}

void Matcher::forget_spare_groups() {
  std::sort(spare_groups_.begin(), spare_groups_.end());
  spare_groups_.erase(std::unique(spare_groups_.begin(), spare_groups_.end()), spare_groups_.end());
  for (Group* group : spare_groups_) {
    if (group->jobs > 0) continue;
    idle_.forget(group);
    queue_.forget(group);
  }
  spare_groups_.clear();
}

void Matcher::allocate(const Place& place) {
  if (idle_.changed().empty() && queue_.newly_queued().empty()) return;
  const std::vector<MachineClass*> kinds = kinds_for_newly_queued();
  uint64_t served = 0;
  while (!queue_.requesting().empty()) {
    Machine* m = next_to_serve(served, kinds);
    if (m == nullptr) break;
    served = m->place;
    while (m->place != 0) {
      Job* job = queue_.best_for(*m);
      if (job == nullptr) break;
      place(*job, *m);
    }
  }
  idle_.changed().clear();
  for (Group* group : queue_.newly_queued()) group->newly_queued = false;
  queue_.newly_queued().clear();
}

// The classes with idle machines that suit a group with newly queued jobs.
std::vector<MachineClass*> Matcher::kinds_for_newly_queued() {
  std::vector<MachineClass*> kinds;
  for (const auto& kind : idle_.classes()) {
    if (kind->idle.empty()) continue;
    const auto wants = [&](const Group* g) { return !g->open.empty() && suits(*kind, g->needs); };
    if (std::any_of(queue_.newly_queued().begin(), queue_.newly_queued().end(), wants))
      kinds.push_back(kind.get());
  }
  return kinds;
}

// The next machine towards the tail of IDLE that may fit a job: a changed one,
// or one of these classes.
Machine* Matcher::next_to_serve(uint64_t after, const std::vector<MachineClass*>& kinds) {
  Machine* next = nullptr;
  const auto consider = [&](const std::map<uint64_t, Machine*>& line) {
    const auto it = line.upper_bound(after);
    if (it != line.end() && (next == nullptr || it->first < next->place)) next = it->second;
  };
  consider(idle_.changed());
  for (const MachineClass* kind : kinds) consider(kind->idle);
  return next;
}

}  // namespace sublet::scheduling
