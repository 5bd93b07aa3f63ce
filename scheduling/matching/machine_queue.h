// The queue IDLE: the machines that may take a job, in the order in which they became idle. Each
// kind of machine has its part of it, in which the first machine with room for some amounts is
// found without a linear search.
//
// Private to the brain; owned by the matcher; one caller at a time.
#ifndef SUBLET_SCHEDULING_MATCHING_MACHINE_QUEUE_H_
#define SUBLET_SCHEDULING_MATCHING_MACHINE_QUEUE_H_

#include <cstdint>
#include <map>

#include "rules/named_amounts.h"
#include "scheduling/amounts.h"
#include "scheduling/matching/search_tree.h"
#include "scheduling/types.h"

namespace sublet::scheduling {

struct Machine;

// What a machine has for one more attempt.
struct Space {
  Amounts room;
  rules::NamedAmounts named;  // of what it offers besides
  bool operator==(const Space&) const = default;
};

// What is asked of one machine.
struct Ask {
  Amounts amounts;
  rules::NamedAmounts named;  // without licences of the pool
  bool within(const Space& space) const {
    return amounts.within(space.room) && named.within(space.named);
  }
};

// Of several machines: the most of each, each amount apart, and how many they are.
struct IdleBound : Space {
  uint64_t members = 0;
};

// A machine's place in IDLE, and what it has there.
struct IdlePlace : TreeLinks<Machine, IdleBound>, Space {
  uint64_t number = 0;  // smaller is nearer to the head; 0: it is not in IDLE
};

struct IdleTraits {
  using Node = Machine;
  using Bound = IdleBound;
  static IdlePlace& links(Machine& machine);
  static const IdlePlace& links(const Machine& machine);
  static bool before(const Machine& a, const Machine& b);
  static uint64_t id(const Machine& machine);
  static IdleBound bound(const Machine& machine);
  static IdleBound join(const IdleBound& a, const IdleBound& b) {
    return {{most(a.room, b.room), rules::most(a.named, b.named)}, a.members + b.members};
  }
};
using IdleLine = SearchTree<IdleTraits>;

class MachineQueue {
 public:
  // Adds the machine to IDLE or removes it, depending on its state. A new one goes to
  // the tail; one already in IDLE keeps its position unless `to_tail`. The next
  // allocation considers it again.
  void update(Machine& machine, bool to_tail, Micros now);
  void remove(Machine& machine);

  // Machines in IDLE that have changed since the last allocation, by their places.
  std::map<uint64_t, Machine*>& changed() { return changed_; }

 private:
  std::map<uint64_t, Machine*> changed_;
  uint64_t last_place_ = 0;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_MATCHING_MACHINE_QUEUE_H_
