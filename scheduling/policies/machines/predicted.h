// "predicted": the machine whose owner will probably stay away longest, by how long he stayed away
// before when he left at that hour of that weekday (scheduling/absences.h). So fewer jobs are
// evicted.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINES_PREDICTED_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINES_PREDICTED_H_

#include "scheduling/books/machine_book.h"
#include "scheduling/policies/machine_policy.h"
#include "scheduling/queries/text.h"

namespace sublet::scheduling {

class Predicted : public MachinePolicy {
 public:
  MachineScore score(const Job&, const Machine& machine, Micros now) const override {
    return {static_cast<double>(expected_more(machine.similar, now - machine.away_since)),
            -static_cast<double>(machine.away_since)};
  }
  Sentence reason(const Job&, const Machine& machine, Micros now) const override {
    return [past = machine.similar.count,
            more = expected_more(machine.similar, now - machine.away_since)] {
      return ", whose owner is expected to stay away for " + span_text(more) +
             " more, judging by " + (past == 0 ? "no past absence" : counted(past, "past absence"));
    };
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINES_PREDICTED_H_
