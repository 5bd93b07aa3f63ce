// How many of a batch's jobs are on machines at a time at most (idl/job_scheduler.idl,
// BatchDescription). Pure functions.
#ifndef SUBLET_JOB_AT_MOST_H_
#define SUBLET_JOB_AT_MOST_H_

#include <cstdint>
#include <string_view>

#include "job/description.h"

namespace sublet {

inline constexpr std::string_view kAtMost = "at_most";
inline constexpr uint64_t kLargestAtMost = 1'000'000;

// The detail of a batch that says so; 0 if there is none: any number. Throws JobError (kInvalid).
uint64_t read_at_most(const Details& details);

}  // namespace sublet

#endif  // SUBLET_JOB_AT_MOST_H_
