// The condition that stops a batch (idl/job_scheduler.idl, BatchDescription): as a
// submitter sends it, and which file of a job fulfils it. What follows from it is the
// brain's. Pure functions.
#ifndef SUBLET_SERVER_STOP_WHEN_H_
#define SUBLET_SERVER_STOP_WHEN_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduling/types.h"
#include "server/jobs/job_spec.h"

namespace sublet::server {

// Takes the "stop_when." ones of a batch's details. Throws Refusal (kInvalid): a name that
// is not known or there twice, a number that is none or 0, no name of an output.
scheduling::StopWhen read_stop_when(
    const std::vector<std::pair<std::string, std::string>>& details);

// Checks that the batch can fulfil it: it has as many jobs, and one of them describes that
// output in these very words, an array with its "{NAME}"s. Throws Refusal (kInvalid).
void check_stop_when(const scheduling::StopWhen& when, const std::vector<SpecRange>& specs);

// The file among `kept` that the job at `offset` of the range left of the output that its
// description calls `awaited`; "": none.
std::string left_of(const std::string& awaited, const SpecRange& range, uint64_t offset,
                    const std::set<std::string>& kept);

}  // namespace sublet::server

#endif  // SUBLET_SERVER_STOP_WHEN_H_
