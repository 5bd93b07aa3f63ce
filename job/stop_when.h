// The condition that stops a batch (idl/job_scheduler.idl, BatchDescription): how it is
// submitted, and which file of a job fulfils it. The brain acts on it. Pure functions.
#ifndef SUBLET_JOB_STOP_WHEN_H_
#define SUBLET_JOB_STOP_WHEN_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "job/description.h"

namespace sublet {

// When to remove the rest of a batch: as soon as one condition holds. 0, "": not set.
struct StopWhen {
  uint64_t done = 0;    // this many of its jobs are done
  uint64_t failed = 0;  // this many have failed
  std::string output;   // a job is done and produced this output, named as in its description
  bool is_set() const { return done > 0 || failed > 0 || !output.empty(); }
  bool operator==(const StopWhen&) const = default;
};

// The form in the `more` of a batch.
Details details_of(const StopWhen& when);

// Reads the "stop_when." entries of a batch's details. Throws JobError (kInvalid) if a name
// is unknown or repeated, a number is invalid or 0, or an output's name is empty or too long.
StopWhen read_stop_when(const Details& details);

// Checks that a batch can fulfil it: it has enough jobs, and one of them describes that output by
// exactly this name, "{NAME}"s included. The jobs are added one description after the other.
class StopWhenCheck {
 public:
  explicit StopWhenCheck(StopWhen when) : when_(std::move(when)) {}
  void add(const SpecRange& range);
  // All were added. Throws JobError (kInvalid).
  void finish() const;

 private:
  const StopWhen when_;
  uint64_t jobs_ = 0;
  bool is_left_ = false;  // the output
};

// The file among `kept` that the job at `offset` of the range produced for the output named
// `awaited` in its description; "": none.
std::string left_of(const std::string& awaited, const SpecRange& range, uint64_t offset,
                    const std::set<std::string>& kept);

}  // namespace sublet

#endif  // SUBLET_JOB_STOP_WHEN_H_
