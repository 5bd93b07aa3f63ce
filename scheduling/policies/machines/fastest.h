// "fastest": the machine on which the job's program is expected to take the least CPU time, by its
// earlier runs (books/program_book.h); if none is known, the one with the fastest core, as its
// client measured it. A machine whose speed is not known comes last.
#ifndef SUBLET_SCHEDULING_POLICIES_MACHINES_FASTEST_H_
#define SUBLET_SCHEDULING_POLICIES_MACHINES_FASTEST_H_

#include <cmath>
#include <limits>

#include "scheduling/books/job_book.h"
#include "scheduling/books/machine_book.h"
#include "scheduling/books/program_book.h"
#include "scheduling/policies/machine_policy.h"
#include "scheduling/queries/text.h"

namespace sublet::scheduling {

class Fastest : public MachinePolicy {
 public:
  explicit Fastest(const ProgramBook& programs) : programs_(programs) {}

  MachineScore score(const Job& job, const Machine& machine, Micros) const override {
    const double speed = machine.record.speed;
    if (speed == 0) return {std::numeric_limits<double>::lowest()};
    const auto expected = programs_.expected(job.record.program, machine.record);
    return {expected ? -expected->log_seconds : std::log(speed)};
  }
  Sentence reason(const Job& job, const Machine& machine, Micros) const override {
    if (machine.record.speed == 0) return ", whose speed is not known, like that of all that fit";
    return [speed = machine.record.speed,
            expected = programs_.expected(job.record.program, machine.record)] {
      const std::string at_speed = "speed " + number_text(speed);
      if (!expected) return ", which is the fastest: " + at_speed;
      return ", which is the fastest for its program: " +
             number_text(std::exp(expected->log_seconds)) + " CPU s expected by " +
             counted(expected->here, "run") + " on such machines and " +
             std::to_string(expected->elsewhere) + " on others; " + at_speed;
    };
  }

 private:
  const ProgramBook& programs_;
};

}  // namespace sublet::scheduling

#endif  // SUBLET_SCHEDULING_POLICIES_MACHINES_FASTEST_H_
