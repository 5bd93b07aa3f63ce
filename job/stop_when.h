// The condition that stops a batch (idl/job_scheduler.idl, BatchDescription): as a
// submitter sends it, and which file of a job fulfils it. What follows from it is the
// brain's. Pure functions.
#ifndef SUBLET_JOB_STOP_WHEN_H_
#define SUBLET_JOB_STOP_WHEN_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "job/description.h"

namespace sublet {

// When the rest of a batch is removed: at the first that holds. 0, "": not asked for.
struct StopWhen {
  uint64_t done = 0;    // so many of its jobs are done
  uint64_t failed = 0;  // so many have failed
  std::string output;   // a job is done and left this output behind, as its description names it
  bool is_set() const { return done > 0 || failed > 0 || !output.empty(); }
  bool operator==(const StopWhen&) const = default;
};

// As they stand in the `more` of a batch.
Details details_of(const StopWhen& when);

// Takes the "stop_when." ones of a batch's details. Throws JobError (kInvalid): a name that
// is not known or there twice, a number that is none or 0, no name of an output.
StopWhen read_stop_when(const Details& details);

// Checks that the batch can fulfil it: it has as many jobs, and one of them describes that
// output in these very words, an array with its "{NAME}"s. Throws JobError (kInvalid).
void check_stop_when(const StopWhen& when, const std::vector<SpecRange>& specs);

// The file among `kept` that the job at `offset` of the range left of the output that its
// description calls `awaited`; "": none.
std::string left_of(const std::string& awaited, const SpecRange& range, uint64_t offset,
                    const std::set<std::string>& kept);

}  // namespace sublet

#endif  // SUBLET_JOB_STOP_WHEN_H_
