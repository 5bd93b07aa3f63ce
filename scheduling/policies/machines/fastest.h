// "fastest": the machine with the fastest core, as its client measured it. One whose speed is not
// known comes last.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINES_FASTEST_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINES_FASTEST_H_

#include "scheduling/books/machine_book.h"
#include "scheduling/policies/machine_policy.h"
#include "scheduling/queries/text.h"

namespace sublet::scheduling {

class Fastest : public MachinePolicy {
 public:
  MachineScore score(const Job&, const Machine& machine, Micros) const override {
    return {machine.record.speed};
  }
  std::string reason(const Job&, const Machine& machine, Micros) const override {
    if (machine.record.speed == 0) return ", whose speed is not known, like that of all that fit";
    return ", which is the fastest: speed " + number_text(machine.record.speed);
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINES_FASTEST_H_
