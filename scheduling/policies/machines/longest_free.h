// "longest-free": the machine whose owner has been away longest, as far as the server knows
// (Mutka, 6.2): he is the least likely to come back soon, so fewer jobs are evicted.
//
// A machine's place in IDLE, by which "fifo-idle" goes, does not say that: one whose job has ended
// goes to the tail, however long its owner has been away.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINES_LONGEST_FREE_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINES_LONGEST_FREE_H_

#include "scheduling/books/machine_book.h"
#include "scheduling/policies/machine_policy.h"
#include "scheduling/queries/text.h"

namespace sublet::scheduling {

class LongestFree : public MachinePolicy {
 public:
  MachineScore score(const Job&, const Machine& machine, Micros) const override {
    return {-static_cast<double>(machine.away_since)};
  }
  Sentence reason(const Job&, const Machine& machine, Micros now) const override {
    return [away = now - machine.away_since] {
      return ", whose owner has been away longest: for " + span_text(away);
    };
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINES_LONGEST_FREE_H_
