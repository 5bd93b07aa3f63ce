// "random": any of the machines that fit, drawn anew for each attempt (Mutka, 6.2). The draw is
// made from the ids, so that a history gives the same machines when it is replayed.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINES_ANY_MACHINE_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINES_ANY_MACHINE_H_

#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/hashed.h"
#include "scheduling/policies/machine_policy.h"

namespace sublet::scheduling {

class AnyMachine : public MachinePolicy {
 public:
  MachineScore score(const Job& job, const Machine& machine, Micros) const override {
    const uint64_t attempt = hashed(hashed(job.record.id) + job.record.attempts);
    return {static_cast<double>(hashed(attempt + machine.record.id))};
  }
  Sentence reason(const Job&, const Machine&, Micros) const override { return ", drawn at random"; }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINES_ANY_MACHINE_H_
