// "fifo-idle": the machine at the head of IDLE, of those that fit (Raman, 3.3.2). One whose job has
// ended goes to the tail, so that all machines get about as many jobs.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINES_FIFO_IDLE_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINES_FIFO_IDLE_H_

#include "scheduling/books/machine_book.h"
#include "scheduling/policies/machine_policy.h"

namespace sublet::scheduling {

class FifoIdle : public MachinePolicy {
 public:
  bool takes_first() const override { return true; }
  Sentence reason(const Job&, const Machine& machine, Micros now) const override {
    return [idle = now - machine.idle_since] {
      return " idle for " + std::to_string(idle / 1'000'000) + " s";
    };
  }
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINES_FIFO_IDLE_H_
