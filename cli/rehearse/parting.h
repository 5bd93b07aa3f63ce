// Between which safe points an interrupted run parts from an undisturbed one, found by comparing
// what both would save there. One thread.
#ifndef SUBLET_CLI_REHEARSE_PARTING_H_
#define SUBLET_CLI_REHEARSE_PARTING_H_

#include <cstdint>
#include <functional>
#include <string>

#include "cli/rehearse/run.h"

namespace sublet::cli {

struct Parting {
  uint64_t interrupted_at = 0;  // the point at which the run was interrupted
  uint64_t same = 0;            // the last point known at which both are the same; 0: none
  uint64_t other = 0;           // the first known at which they differ; 0: at none
  std::string what;             // what differs there, as lines
};

// The last number from `low` on for which `same` holds, which is true of `low` and false of
// `high`; `same` is false from some number on. Stops early when `enough` says so: then *next, the
// first known to be false, is further away.
uint64_t last_same(uint64_t low, uint64_t high, const std::function<bool(uint64_t)>& same,
                   const std::function<bool()>& enough, uint64_t* next);

// `points`: of an undisturbed run. `at`: where to interrupt. Takes at most about `most_us`, and
// says then what it knows. Throws PoolError, FileError.
Parting find_parting(Runner& runner, uint64_t points, uint64_t at, int64_t most_us);

// "the runs part between the points 4 and 5 ..."; ends without a full stop.
std::string parting_text(const Parting& parting, uint64_t points);

}  // namespace sublet::cli

#endif  // SUBLET_CLI_REHEARSE_PARTING_H_
