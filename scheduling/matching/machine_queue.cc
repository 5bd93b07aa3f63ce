#include "scheduling/matching/machine_queue.h"

#include <utility>

#include "scheduling/books/machine_book.h"
#include "scheduling/matching/suitability.h"

namespace sublet::scheduling {

IdlePlace& IdleTraits::links(Machine& machine) { return machine.place; }
const IdlePlace& IdleTraits::links(const Machine& machine) { return machine.place; }
bool IdleTraits::before(const Machine& a, const Machine& b) {
  return a.place.number < b.place.number;
}
uint64_t IdleTraits::id(const Machine& machine) { return machine.record.id; }
IdleBound IdleTraits::bound(const Machine& machine) { return {machine.place, 1}; }

void MachineQueue::update(Machine& machine, bool to_tail, Micros now) {
  // One that pauses or rests is idle but must get no orders, so it is not in the queue.
  const bool idle =
      state_of(machine) == MachineState::kIdle && machine.paused_until == 0 && !rests(machine);
  IdlePlace& place = machine.place;
  if (place.number != 0 && (!idle || to_tail)) remove(machine);
  if (!idle) return;
  Space space = space_of(machine);
  if (place.number == 0) {
    place.number = ++last_place_;
    static_cast<Space&>(place) = std::move(space);
    machine.idle_since = now;
    machine.kind->idle.add(machine);
  } else if (static_cast<const Space&>(place) != space) {
    static_cast<Space&>(place) = std::move(space);
    machine.kind->idle.refresh(machine);
  }
  changed_.emplace(place.number, &machine);
}

void MachineQueue::remove(Machine& machine) {
  if (machine.place.number == 0) return;
  machine.kind->idle.take(machine);
  changed_.erase(machine.place.number);
  machine.place.number = 0;
}

}  // namespace sublet::scheduling
