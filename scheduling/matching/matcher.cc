// IDLE is served from its head: each machine gets the best waiting job that fits it
// (JobQueue::best_for), or keeps its position if none does. Only possible changes are
// considered: machines that have changed, and, for groups with new jobs, the idle machines with
// room for the least of them. So no decision scans the queue, and after each apply no waiting job
// fits an idle machine.
#include "scheduling/matching/matcher.h"

#include "scheduling/books/ledger.h"
#include "scheduling/books/machine_book.h"

namespace sublet::scheduling {

void Matcher::set_kind(Machine& machine) {
  MachineKind* before = machine.kind;
  bool split = false;
  machine.kind = suitability_.enter_kind(machine.record, split);
  if (split) queue_.sort_out(ledger_.users());
  if (before != nullptr) suitability_.leave_kind(before);
}

void Matcher::rekey() {
  const Ledger::Moved& moved = ledger_.moved();
  if (moved.all) queue_.rekey_all(suitability_);
  for (User* user : moved.users) queue_.rekey(*user);
  ledger_.settle_moved();
}

void Matcher::allocate(const Place& place) {
  rekey();
  if (idle_.changed().empty() && queue_.newly_queued().empty()) return;
  uint64_t served = 0;
  while (!hosts_.requesting().empty()) {
    Machine* m = next_to_serve(served);
    if (m == nullptr) break;
    served = m->place.number;
    while (m->place.number != 0) {
      Job* job = queue_.best_for(*m);
      if (job == nullptr) break;
      place(*job, *m);
      rekey();
    }
  }
  idle_.changed().clear();
  for (Group* group : queue_.newly_queued()) group->newly_queued = false;
  queue_.newly_queued().clear();
}

// The next machine towards the tail of IDLE that may fit a job: a changed one, or one with room
// for a new job.
Machine* Matcher::next_to_serve(uint64_t after) {
  Machine* next = nullptr;
  const auto it = idle_.changed().upper_bound(after);
  if (it != idle_.changed().end()) next = it->second;
  const auto behind = [after](const Machine& m) { return m.place.number > after; };
  for (const Group* group : queue_.newly_queued()) {
    if (group->lines.empty()) continue;
    const Amounts& needs = group->newly_least;
    const auto may = [&](const Amounts& room) { return needs.within(room); };
    const auto has_room = [&](const Machine& m) { return needs.within(m.place.room); };
    for (const auto& kind : suitability_.kinds()) {
      if (!group->suits[kind->index]) continue;
      Machine* m = kind->idle.first_behind(behind, may, has_room);
      if (m != nullptr && (next == nullptr || m->place.number < next->place.number)) next = m;
    }
  }
  return next;
}

}  // namespace sublet::scheduling
