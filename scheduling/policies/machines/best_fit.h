// "best-fit": the machine on which the job leaves the fewest cores, then the least memory, so that
// room for large jobs is kept together.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINES_BEST_FIT_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINES_BEST_FIT_H_

#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/policies/machine_policy.h"
#include "scheduling/queries/text.h"

namespace sublet::scheduling {

class BestFit : public MachinePolicy {
 public:
  MachineScore score(const Job& job, const Machine& machine, Micros) const override {
    const Amounts left = left_over(job, machine);
    return {-static_cast<double>(left.cores), -static_cast<double>(left.memory)};
  }
  Sentence reason(const Job& job, const Machine& machine, Micros) const override {
    return [left = left_over(job, machine)] {
      return ", which has the least left over: " + counted(left.cores, "core") + ", " +
             bytes_text(left.memory) + " of memory";
    };
  }

 private:
  static Amounts left_over(const Job& job, const Machine& machine) {
    return machine.place.room - amounts_of(job.record.needs);
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINES_BEST_FIT_H_
