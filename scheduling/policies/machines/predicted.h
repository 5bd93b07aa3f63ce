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
  std::string reason(const Job&, const Machine& machine, Micros now) const override {
    const uint64_t past = machine.similar.count;
    return ", whose owner is expected to stay away for " +
           span_text(expected_more(machine.similar, now - machine.away_since)) +
           " more, judging by " + (past == 0 ? "no past absence" : counted(past, "past absence"));
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINES_PREDICTED_H_
